#include "topology/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "tests/topology/cluster_file_text.h"

namespace trireme::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorsOf(const std::string& text) {
  const absl::StatusOr<ClusterFile> file = ParseClusterFile(text, "prod.yaml");
  return file.ok() ? "no error" : std::string(file.status().message());
}

// The small file with one line replaced.
std::string ErrorsWith(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kSmallClusterFile, {{from, to}});
  EXPECT_NE(text, kSmallClusterFile) << from;
  return ErrorsOf(text);
}

TEST(ClusterFileTest, TheWholeFileBecomesItsValues) {
  const auto parsed = ParseClusterFile(kWholeClusterFile, "prod.yaml");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ClusterFile& file = *parsed;
  EXPECT_EQ(file.name, "prod");
  EXPECT_EQ(file.model.id, "smollm");
  EXPECT_EQ(file.model.path, "/models/smollm.gguf");
  EXPECT_EQ(file.model.context, 4096);
  EXPECT_EQ(file.model.kv_cache, "f32");
  EXPECT_EQ(file.model.activations, "float32");
  EXPECT_EQ(file.model.bad_weights, "refuse");
  EXPECT_EQ(file.network.bytes_per_second, 1.25e9);
  EXPECT_EQ(file.network.latency, absl::Microseconds(50));
  ASSERT_EQ(file.nodes.size(), 2U);
  EXPECT_EQ(file.nodes[0].name, "n1");
  EXPECT_EQ(file.nodes[0].host, "node-a");
  EXPECT_THAT(file.nodes[0].cores, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(file.nodes[0].memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(file.nodes[0].stream_bytes_per_second, 20e9);
  EXPECT_EQ(file.nodes[0].operations_per_second, 150e9);
  EXPECT_FALSE(file.nodes[1].memory_bytes.has_value());
  ASSERT_EQ(file.replicas.size(), 2U);
  const ClusterReplica& r1 = file.replicas[0];
  ASSERT_EQ(r1.stages.size(), 2U);
  EXPECT_EQ(r1.stages[0].node_index, 0);
  EXPECT_EQ(r1.stages[1].node_index, 1);
  EXPECT_EQ(r1.stages[0].ranks, 2);
  EXPECT_THAT(r1.stages[0].cores, ElementsAre(0, 1));
  EXPECT_EQ(r1.stages[0].threads, 1);
  EXPECT_EQ(r1.stages[0].layers, (Range{0, 15}));
  EXPECT_EQ(r1.stages[1].layers, (Range{15, 30}));
  EXPECT_EQ(r1.engine_listen, "node-a:7001");
  EXPECT_THAT(file.replicas[1].stages[0].cores, ElementsAre(2, 3));
}

TEST(ClusterFileTest, TheBalancerAndItsWatchersHaveTheirValues) {
  const auto file = ParseClusterFile(kWholeClusterFile, "prod.yaml");
  ASSERT_TRUE(file.ok() && file->balancer.has_value());
  const ClusterBalancer& balancer = *file->balancer;
  EXPECT_THAT(balancer.listen, ElementsAre("127.0.0.1:8080", "127.0.0.1:8081"));
  EXPECT_THAT(balancer.replica_indices, ElementsAre(1, 0));
  EXPECT_EQ(balancer.policy.bounded_load, 1.5);
  EXPECT_EQ(balancer.policy.explore, 0.02);
  EXPECT_EQ(balancer.policy.stale, absl::Seconds(2));
  EXPECT_EQ(balancer.retry.budget, 0.2);
  EXPECT_EQ(balancer.retry.attempts, 3);
  EXPECT_EQ(balancer.retry.resumes, 4);
  EXPECT_EQ(balancer.limits.queue, 100);
  EXPECT_EQ(balancer.resume_grace, absl::Seconds(5));
  EXPECT_EQ(file->observe.admin, "unix:/run/trireme/admin.sock");
  EXPECT_EQ(file->observe.metrics, "127.0.0.1:9400");
  EXPECT_EQ(file->observe.log_level, "debug");
  EXPECT_TRUE(file->observe.log_json);
}

// What r1 says itself, or r2 takes from the defaults, by hand from the text.
TEST(ClusterFileTest, AReplicaTakesTheDefaultsUnlessItSaysOtherwise) {
  const auto file = ParseClusterFile(kWholeClusterFile, "prod.yaml");
  ASSERT_TRUE(file.ok());
  const ReplicaDefaults& own = file->replicas[0].settings;
  EXPECT_EQ(own.remote_agent, "/opt/other.sh");
  EXPECT_EQ(own.interfaces.control, "eth1");
  EXPECT_THAT(own.interfaces.fabric, ElementsAre("ib2"));
  EXPECT_EQ(own.kv_bytes, int64_t{1} << 30);
  EXPECT_EQ(own.timeouts.launch, absl::Seconds(1));
  EXPECT_EQ(own.timeouts.connect, absl::Seconds(2));
  EXPECT_EQ(own.timeouts.load, absl::Seconds(3));
  EXPECT_EQ(own.timeouts.warmup, absl::Seconds(4));
  EXPECT_EQ(own.timeouts.heartbeat.period, absl::Milliseconds(5));
  EXPECT_EQ(own.timeouts.heartbeat.suspect, absl::Milliseconds(6));
  EXPECT_EQ(own.timeouts.heartbeat.dead, absl::Milliseconds(7));
  EXPECT_FALSE(own.timeouts.stall.has_value());
  EXPECT_EQ(own.drain.announce, absl::Seconds(8));
  EXPECT_EQ(own.drain.deadline, absl::Seconds(9));
  EXPECT_EQ(own.restart.backoff_min, absl::Seconds(10));
  EXPECT_EQ(own.restart.backoff_max, absl::Seconds(11));
  EXPECT_EQ(own.restart.failures_max, 12);
  EXPECT_EQ(own.restart.failures_window, absl::Seconds(13));

  const ReplicaDefaults& taken = file->replicas[1].settings;
  EXPECT_EQ(taken.launcher, LauncherKind::kMpirun);
  EXPECT_EQ(taken.remote_agent, "/opt/agent.sh");
  EXPECT_EQ(taken.interfaces.control, "eth0");
  EXPECT_THAT(taken.interfaces.fabric, ElementsAre("ib0", "ib1"));
  EXPECT_EQ(taken.kv_bytes, int64_t{2} << 30);
  EXPECT_EQ(taken.timeouts.launch, absl::Seconds(61));
  EXPECT_EQ(taken.timeouts.connect, absl::Seconds(46));
  EXPECT_EQ(taken.timeouts.load, absl::Minutes(16));
  EXPECT_EQ(taken.timeouts.warmup, absl::Minutes(3));
  EXPECT_EQ(taken.timeouts.heartbeat.period, absl::Milliseconds(200));
  EXPECT_EQ(taken.timeouts.heartbeat.suspect, absl::Milliseconds(900));
  EXPECT_EQ(taken.timeouts.heartbeat.dead, absl::Seconds(3));
  EXPECT_EQ(taken.timeouts.stall, absl::Seconds(20));
  EXPECT_EQ(taken.drain.announce, absl::Seconds(3));
  EXPECT_EQ(taken.drain.deadline, absl::Seconds(90));
  EXPECT_EQ(taken.restart.backoff_min, absl::Seconds(2));
  EXPECT_EQ(taken.restart.failures_max, 4);
}

TEST(ClusterFileTest, DefaultsHoldWhereverTheyStandInTheFile) {
  const auto file =
      ParseClusterFile(absl::StrCat(kSmallClusterFile, "defaults: {launcher: none}\n"), "a.yaml");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->replicas[0].settings.launcher, LauncherKind::kNone);
}

TEST(ClusterFileTest, ASmallFileLeavesTheRestAtItsDefault) {
  const auto file = ParseClusterFile(kSmallClusterFile, "deploy/laptop.yaml");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->name, "laptop");
  EXPECT_EQ(file->model.path, kDefaultModelPath);
  EXPECT_EQ(file->nodes[0].host, "localhost");
  EXPECT_EQ(file->replicas[0].stages[0].ranks, 1);
  EXPECT_FALSE(file->replicas[0].stages[0].layers.has_value());
  EXPECT_FALSE(file->balancer.has_value());
  EXPECT_EQ(file->replicas[0].settings.timeouts.load, absl::Minutes(15));
}

TEST(ClusterFileTest, AllErrorsComeAtOnceWithPlaceKeyAndRemedy) {
  EXPECT_EQ(ErrorsOf("version: 1\n"
                     "model: {path: default}\n"
                     "defaults:\n"
                     "  timeouts:\n"
                     "    load: 15\n"
                     "nodes:\n"
                     "  n1: {gpus: [0, 1]}\n"
                     "replicas:\n"
                     "  r1:\n"
                     "    stages: [{node: n2, ranks: 3}]\n"
                     "    engine: {listen: \"127.0.0.1:7001\"}\n"
                     "balancer:\n"
                     "  listen: {grpc: \"127.0.0.1:8080\"}\n"
                     "  polcy: {stale: 1s}\n"),
            "prod.yaml:5:11: defaults.timeouts.load: \"15\" has no unit; write 15s or 15min\n"
            "prod.yaml:7:8: nodes.n1.gpus: not supported in this version; leave it out\n"
            "prod.yaml:10:21: replicas.r1.stages[0].node: \"n2\" is no node; did you mean \"n1\"?\n"
            "prod.yaml:10:32: replicas.r1.stages[0].ranks: \"3\" is not one of 1, 2, 4, 8\n"
            "prod.yaml:14:3: balancer.polcy: unknown key; did you mean \"policy\"?\n"
            "5 errors; nothing was started.");
}

std::string Misspelt(const std::string& word, int manner) {
  switch (manner) {
    case 0:
      return word.size() > 2 ? word.substr(0, word.size() - 1) : word + "x";  // a letter lost
    case 1:
      return word.substr(0, 1) + word;  // a letter twice
    default:
      return "x" + word.substr(1);  // another letter
  }
}

TEST(ClusterFileTest, D13_EveryKeyMisspeltOnceIsRejectedAndTheRightOneNamed) {
  const std::vector<std::string> lines = absl::StrSplit(kWholeClusterFile, '\n');
  int keys = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t begin = lines[i].find_first_not_of(" -");
    const size_t colon = lines[i].find(':');
    if (begin == std::string::npos || colon == std::string::npos) {
      continue;
    }
    const std::string key = lines[i].substr(begin, colon - begin);
    if (key == "n1" || key == "n2" || key == "r1" || key == "r2" || key[0] == '{') {
      continue;  // names, and a stage in one line
    }
    ++keys;
    for (int manner = 0; manner < (key.size() > 2 ? 3 : 2); ++manner) {
      std::vector<std::string> mutated = lines;
      mutated[i].replace(begin, key.size(), Misspelt(key, manner));
      const std::string errors = ErrorsOf(absl::StrJoin(mutated, "\n"));
      EXPECT_THAT(errors, HasSubstr(absl::StrCat("prod.yaml:", i + 1, ":", begin + 1, ": ")));
      EXPECT_THAT(errors, HasSubstr(absl::StrCat("unknown key; did you mean \"", key, "\"?")))
          << mutated[i];
    }
  }
  EXPECT_EQ(keys, 108);  // counted in the text: 113 lines, less 4 names and a stage in one line
}

TEST(ClusterFileTest, D13_VersionIsWanted) {
  EXPECT_EQ(ErrorsWith("version: 1\n", ""),
            "prod.yaml:1:1: version: missing; wanted: 1\n1 error; nothing was started.");
  EXPECT_EQ(ErrorsWith("version: 1\n", "version: 2\nwhatever: it means there\n"),
            "prod.yaml:1:10: version: \"2\" is unknown; this program reads version 1\n"
            "1 error; nothing was started.");
}

TEST(ClusterFileTest, D13_WrongShapesAreNamed) {
  EXPECT_THAT(ErrorsOf(""), HasSubstr("holds nothing; wanted: a map"));
  EXPECT_THAT(ErrorsOf("[1]"), HasSubstr("holds a list; wanted: a map"));
  EXPECT_THAT(ErrorsWith("{path: default}", "default"),
              HasSubstr("2:8: model: is a single value; wanted: map"));
  EXPECT_THAT(ErrorsWith("{path: default}", ""), HasSubstr("2:1: model: is nothing; wanted: map"));
  EXPECT_THAT(ErrorsWith("path: default", "path: [a]"), HasSubstr("model.path: is a list"));
  EXPECT_THAT(ErrorsWith("n1: {}", "n1: 5"), HasSubstr("4:3: nodes.n1: is a single value"));
  EXPECT_THAT(ErrorsWith("n1: {}", "n1: {cores: [0, [1]]}"),
              HasSubstr("nodes.n1.cores[1]: is a list"));
  EXPECT_THAT(ErrorsWith("      - {node: n1}", "      []"),
              HasSubstr("replicas.r1.stages: is empty; wanted: at least one"));
  EXPECT_THAT(ErrorsWith("- {node: n1}", "- n1"), HasSubstr("stages[0]: is a single value"));
  EXPECT_THAT(ErrorsWith("{node: n1}", "{}"),
              HasSubstr("replicas.r1.stages[0].node: missing; wanted: a name of `nodes`"));
}

TEST(ClusterFileTest, D13_WordsAreNotGuessedAt) {
  EXPECT_THAT(ErrorsWith("n1: {}", "n1: {cores: no}"), HasSubstr("\"no\" is no list of cores"));
  EXPECT_THAT(ErrorsWith("{node: n1}", "{node: n1, ranks: 02}"), HasSubstr("\"02\" is not one of"));
  EXPECT_THAT(ErrorsWith("{node: n1}", "{node: n1, threads: 010}"),
              HasSubstr("\"010\" is no whole number"));
  EXPECT_THAT(ErrorsWith("n1: {}", "n1: {memory: 8}"), HasSubstr("\"8\" has no unit"));
}

TEST(ClusterFileTest, KeysOfOtherVersionsAreErrorsNotIgnored) {
  for (const char* line :
       {"tls: {public: {cert: a}}", "tenants: {file: a}", "defaults: {min_bandwidth: 80Gbit/s}",
        "defaults: {drain: {migrate: true}}", "defaults: {memory: {host_pinned: 8GiB}}",
        "observe: {compat_metrics: [x]}",
        "balancer: {slo: {a: 1}, listen: {grpc: \"a:1\", http: \"a:2\"}}"}) {
    EXPECT_THAT(ErrorsOf(absl::StrCat(kSmallClusterFile, line, "\n")),
                HasSubstr("not supported in this version"))
        << line;
  }
}

TEST(ClusterFileTest, NoMutatedFileIsMoreThanRefused) {
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::string text = kWholeClusterFile;
    for (int edit = 0; edit < 3; ++edit) {
      text[random() % text.size()] = "\n :-[]{}&*!|>'\"0a9"[random() % 18];
    }
    refused += ParseClusterFile(text, "x").ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 250);
}

TEST(ClusterFileTest, TheShippedTopologiesAreGood) {
  for (const char* name : {"laptop", "two_replicas", "two_nodes"}) {
    const std::string path = absl::StrCat("deploy/topologies/", name, ".yaml");
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    const auto parsed = ParseClusterFile(text.str(), path);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_TRUE(parsed->balancer.has_value()) << name;
  }
}

}  // namespace
}  // namespace trireme::topology

#include "topology/cluster_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "topology/cluster_file.h"

namespace trireme::topology {
namespace {

using ::testing::HasSubstr;

struct Cluster {
  std::string nodes = "{n1: {}}";
  std::string stages = "[{node: n1}]";
  std::string more;  // further lines of replica r1
  std::string listen = "127.0.0.1:7001";
  std::string rest;  // further lines at the top
};

std::string ErrorsOf(const Cluster& cluster) {
  const auto file = ParseClusterFile(
      absl::StrCat("version: 1\nmodel: {path: default}\nnodes: ", cluster.nodes,
                   "\nreplicas:\n  r1:\n    stages: ", cluster.stages, "\n    engine: {listen: \"",
                   cluster.listen, "\"}\n", cluster.more, cluster.rest),
      "t.yaml");
  return file.ok() ? "no error" : std::string(file.status().message());
}

TEST(ClusterRulesTest, AGoodClusterBreaksNone) { EXPECT_EQ(ErrorsOf({}), "no error"); }

TEST(ClusterRulesTest, D13_NodesMustExist) {
  EXPECT_THAT(
      ErrorsOf({.stages = "[{node: other}]"}),
      HasSubstr("t.yaml:6:21: replicas.r1.stages[0].node: \"other\" is no node; there are: n1"));
}

TEST(ClusterRulesTest, D13_StagesHaveTheSameNumberOfRanks) {
  EXPECT_THAT(ErrorsOf({.stages = "[{node: n1, ranks: 2}, {node: n1}]"}),
              HasSubstr("replicas.r1.stages[1].ranks: 1 tensor ranks, but 2 in stages[0]"));
}

TEST(ClusterRulesTest, D13_LayersFollowOneAnother) {
  EXPECT_THAT(ErrorsOf({.stages = "[{node: n1, layers: 0-9}, {node: n1, layers: 9-19}]"}),
              HasSubstr("stages[1].layers: begins with layer 9, which an earlier stage has, too; "
                        "this stage must begin with layer 10"));
  EXPECT_THAT(ErrorsOf({.stages = "[{node: n1, layers: 0-9}, {node: n1, layers: 11-19}]"}),
              HasSubstr("stages[1].layers: begins with layer 11, which leaves a gap"));
  EXPECT_THAT(ErrorsOf({.stages = "[{node: n1, layers: 1-9}]"}),
              HasSubstr("the first stage must begin with layer 0"));
  EXPECT_THAT(ErrorsOf({.stages = "[{node: n1, layers: 0-9}, {node: n1}]"}),
              HasSubstr("stages[1].layers: layers are given for some stages only"));
}

TEST(ClusterRulesTest, D13_ACoreIsUsedOnce) {
  EXPECT_THAT(ErrorsOf({.stages = "[{node: n1, cores: 0-1}, {node: n1, cores: 1-2}]"}),
              HasSubstr("stages[1].cores: core 1 of host localhost is in use already, by "
                        "replicas.r1.stages[0].cores"));
  // Two names of one host are one host.
  EXPECT_THAT(ErrorsOf({.nodes = "{n1: {host: a}, n2: {host: a}}",
                        .stages = "[{node: n1, cores: 0}, {node: n2, cores: 0}]",
                        .listen = "a:7001"}),
              HasSubstr("core 0 of host a is in use already"));
  EXPECT_EQ(ErrorsOf({.nodes = "{n1: {host: a}, n2: {host: b}}",
                      .stages = "[{node: n1, cores: 0}, {node: n2, cores: 0}]",
                      .listen = "a:7001"}),
            "no error");
}

TEST(ClusterRulesTest, D13_CoresAreThoseOfTheNodeAndEnough) {
  EXPECT_THAT(ErrorsOf({.nodes = "{n1: {cores: 0-3}}", .stages = "[{node: n1, cores: 3-4}]"}),
              HasSubstr("core 4 is not among those of node n1 (0,1,2,3)"));
  EXPECT_THAT(ErrorsOf({.stages = "[{node: n1, ranks: 2, threads: 2, cores: 0-2}]"}),
              HasSubstr("3 cores for 2 ranks of 2 threads; give at least 4"));
}

TEST(ClusterRulesTest, D13_PortsOfOneHostDiffer) {
  EXPECT_THAT(ErrorsOf({.rest = "balancer: {listen: {grpc: \"0.0.0.0:7001\"}}\n"}),
              HasSubstr("balancer.listen.grpc: port 7001 on localhost is taken already, by "
                        "replicas.r1.engine.listen"));
  EXPECT_THAT(ErrorsOf({.rest = "balancer: {listen: {grpc: [\"a:1\", \"a:1\"]}}\n"}),
              HasSubstr("port 1 on localhost is taken already, by balancer.listen.grpc"));
  EXPECT_THAT(ErrorsOf({.rest = "observe: {metrics: \"127.0.0.1:7001\"}\n"}),
              HasSubstr("observe.metrics: port 7001"));
  // Two addresses of one host, and two hosts, may have the same port.
  EXPECT_EQ(ErrorsOf({.rest = "balancer: {listen: {grpc: \"127.0.0.2:7001\"}}\n"}), "no error");
  EXPECT_EQ(ErrorsOf({.nodes = "{n1: {host: a}}",
                      .listen = "a:7001",
                      .rest = "balancer: {listen: {grpc: \"0.0.0.0:7001\"}}\n"}),
            "no error");
}

TEST(ClusterRulesTest, D13_OthersMustBeAbleToReachWhatTheyCall) {
  EXPECT_THAT(ErrorsOf({.nodes = "{n1: {host: localhost}, n2: {host: b}}",
                        .stages = "[{node: n1}, {node: n2}]"}),
              HasSubstr("nodes.n1.host: \"localhost\" means another machine on each host"));
  EXPECT_THAT(ErrorsOf({.nodes = "{n1: {host: a}}"}),
              HasSubstr("engine.listen: \"127.0.0.1:7001\" can be reached on host a alone"));
  EXPECT_THAT(ErrorsOf({.listen = "0.0.0.0:7001"}), HasSubstr("tells nobody where to call"));
}

TEST(ClusterRulesTest, LaunchersAreGivenWhatTheyCanDo) {
  const std::string nodes = "{n1: {host: a}, n2: {host: b}}";
  EXPECT_THAT(ErrorsOf({.nodes = nodes,
                        .stages = "[{node: n1}, {node: n2}]",
                        .more = "    launcher: none\n",
                        .listen = "a:7001"}),
              HasSubstr("replicas.r1.launcher: none starts one process, but replica r1 spans 2"));
  EXPECT_THAT(
      ErrorsOf({.more = "    launcher: srun\n", .rest = "defaults: {remote: {agent: /a}}\n"}),
      HasSubstr("t.yaml:9:12: defaults.remote: has no effect with launcher: srun"));
  EXPECT_EQ(ErrorsOf({.more = "    launcher: srun\n    remote: ssh\n",
                      .rest = "defaults: {remote: {agent: /a}}\n"}),
            "no error");
}

TEST(ClusterRulesTest, TimesComeInTheirOrder) {
  EXPECT_THAT(ErrorsOf({.more = "    timeouts: {heartbeat: {dead: 1s}}\n"}),
              HasSubstr("replicas.r1.timeouts.heartbeat.dead: 1s is not longer than suspect, 1s"));
  EXPECT_THAT(ErrorsOf({.rest = "defaults: {timeouts: {heartbeat: {period: 2s}}}\n"}),
              HasSubstr("defaults.timeouts.heartbeat.suspect: 1s is shorter than the period, 2s"));
  EXPECT_THAT(ErrorsOf({.more = "    restart: {backoff: [9s, 3s]}\n"}),
              HasSubstr("restart.backoff: the shortest wait stands first"));
}

TEST(ClusterRulesTest, OneMistakeInTheDefaultsIsOneError) {
  const std::string errors =
      ErrorsOf({.more = "  r2: {stages: [{node: n1}], engine: {listen: \"127.0.0.1:7002\"}}\n",
                .rest = "defaults: {restart: {backoff: [9s, 3s]}}\n"});
  EXPECT_THAT(errors, HasSubstr("1 error;"));
}

TEST(ClusterRulesTest, TheBalancerNamesReplicasThatExistOnce) {
  EXPECT_THAT(ErrorsOf({.rest = "balancer: {listen: {grpc: \"a:1\"}, replicas: [r3]}\n"}),
              HasSubstr("balancer.replicas: \"r3\" is no replica; did you mean \"r1\"?"));
  EXPECT_THAT(ErrorsOf({.rest = "balancer: {listen: {grpc: \"a:1\"}, replicas: [r1, r1]}\n"}),
              HasSubstr("\"r1\" is named twice"));
}

}  // namespace
}  // namespace trireme::topology

#include "launcher/replica_command.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "launcher/core_list.h"
#include "launcher/mpi_command.h"
#include "launcher/slurm_command.h"

namespace trireme::launcher {
namespace {

using topology::ClusterFile;
using topology::ClusterReplica;
using topology::ClusterStage;

// Ranks leave by their own limits only after the supervisor, which can say who is late, has had its
// chance.
constexpr absl::Duration kOwnLimitMargin = absl::Seconds(5);

std::string Milliseconds(absl::Duration duration) {
  return absl::StrCat(absl::ToInt64Milliseconds(duration));
}

void Add(std::vector<std::string>* words, std::initializer_list<std::string> further) {
  words->insert(words->end(), further.begin(), further.end());
}

// Layers of each stage when the file states all of them, else none.
std::vector<int64_t> StatedLayers(const ClusterReplica& replica) {
  std::vector<int64_t> layers;
  for (const ClusterStage& stage : replica.stages) {
    if (!stage.layers.has_value()) {
      return {};
    }
    layers.push_back(stage.layers->size());
  }
  return layers;
}

void AddLayout(const ClusterReplica& replica, const ReplicaStart& start,
               std::vector<std::string>* words) {
  Add(words, {"--tensor", absl::StrCat(replica.stages[0].ranks), "--stages",
              absl::StrCat(replica.stages.size())});
  const std::vector<int64_t> layers =
      start.stage_layers.empty() ? StatedLayers(replica) : start.stage_layers;
  if (layers.size() > 1) {
    Add(words, {"--stage-layers", absl::StrJoin(layers, ",")});
  }
  std::vector<int> threads;
  std::vector<std::string> cores;
  bool is_bound = false;
  for (const ClusterStage& stage : replica.stages) {
    threads.push_back(ThreadsOf(stage));
    is_bound = is_bound || !stage.cores.empty();
    for (int tensor_rank = 0; tensor_rank < stage.ranks; ++tensor_rank) {
      cores.push_back(CoreListText(CoresOfRank(stage, tensor_rank)));
    }
  }
  const bool are_equal = std::count(threads.begin(), threads.end(), threads[0]) ==
                         static_cast<std::ptrdiff_t>(threads.size());
  Add(words, {"--threads", are_equal ? absl::StrCat(threads[0]) : absl::StrJoin(threads, ",")});
  if (is_bound) {
    Add(words, {"--rank-cores", absl::StrJoin(cores, "/")});
  }
}

void AddTimes(const ClusterReplica& replica, std::vector<std::string>* words) {
  const topology::ClusterTimeouts& timeouts = replica.settings.timeouts;
  Add(words, {"--launch-ms", Milliseconds(timeouts.launch + kOwnLimitMargin), "--connect-ms",
              Milliseconds(timeouts.connect + kOwnLimitMargin), "--heartbeat-ms",
              Milliseconds(timeouts.heartbeat.period), "--suspect-ms",
              Milliseconds(timeouts.heartbeat.suspect), "--dead-ms",
              Milliseconds(timeouts.heartbeat.dead)});
  if (timeouts.stall.has_value()) {
    Add(words, {"--stall-ms", Milliseconds(*timeouts.stall)});
  }
  Add(words, {"--drain-announce-ms", Milliseconds(replica.settings.drain.announce), "--drain-ms",
              Milliseconds(replica.settings.drain.deadline)});
}

// The supervisor's metrics have the file's port, its children those after it.
void AddMetrics(const ClusterFile& file, int place, std::vector<std::string>* words) {
  int port = 0;
  const size_t colon = file.observe.metrics.rfind(':');
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(file.observe.metrics.substr(colon + 1), &port)) {
    return;
  }
  Add(words, {"--metrics-listen", absl::StrCat(file.observe.metrics.substr(0, colon + 1),
                                               port == 0 ? 0 : port + 1 + place)});
}

}  // namespace

std::string RunTag(absl::string_view run_folder, absl::string_view name, uint64_t epoch) {
  return absl::StrCat(run_folder, ":", name, ":", epoch);
}

std::string AdminAddress(absl::string_view run_folder, absl::string_view name) {
  return absl::StrCat("unix:", run_folder, "/", name, ".sock");
}

bool IsLoopbackHost(absl::string_view host) {
  return host.empty() || host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

int ThreadsOf(const ClusterStage& stage) {
  if (stage.threads > 0) {
    return stage.threads;
  }
  return std::max(1, static_cast<int>(stage.cores.size()) / stage.ranks);
}

std::vector<int> CoresOfRank(const ClusterStage& stage, int tensor_rank) {
  const int cores = static_cast<int>(stage.cores.size());
  if (cores == 0) {
    return {};
  }
  if (cores < stage.ranks) {
    return {stage.cores[tensor_rank % cores]};
  }
  return std::vector<int>(stage.cores.begin() + tensor_rank * cores / stage.ranks,
                          stage.cores.begin() + (tensor_rank + 1) * cores / stage.ranks);
}

int RanksOf(const ClusterReplica& replica) {
  int ranks = 0;
  for (const ClusterStage& stage : replica.stages) {
    ranks += stage.ranks;
  }
  return ranks;
}

std::vector<std::string> HostsOfRanks(const ClusterFile& file, const ClusterReplica& replica) {
  std::vector<std::string> hosts;
  for (const ClusterStage& stage : replica.stages) {
    const std::string& host = file.nodes[stage.node_index].host;
    hosts.insert(hosts.end(), stage.ranks, host.empty() ? "localhost" : host);
  }
  return hosts;
}

std::string EngineAddress(const ClusterFile& file, const ClusterReplica& replica) {
  const size_t colon = replica.engine_listen.rfind(':');
  const std::string host = replica.engine_listen.substr(0, colon);
  if (host != "0.0.0.0" && host != "[::]") {
    return replica.engine_listen;
  }
  return absl::StrCat(HostsOfRanks(file, replica)[0], replica.engine_listen.substr(colon));
}

std::vector<std::string> ServeWords(const ClusterFile& file, const ClusterReplica& replica,
                                    const ReplicaStart& start) {
  std::vector<std::string> words = {start.program,    "serve",
                                    "--model",        file.model.path,
                                    "--replica",      replica.name,
                                    "--epoch",        absl::StrCat(start.epoch),
                                    "--listen",       replica.engine_listen,
                                    "--admin-listen", AdminAddress(start.run_folder, replica.name)};
  if (!file.model.id.empty()) {
    Add(&words, {"--model-id", file.model.id});
  }
  AddLayout(replica, start, &words);
  if (file.model.context > 0) {
    Add(&words, {"--context-tokens", absl::StrCat(file.model.context)});
  }
  if (start.kv_tokens > 0) {
    Add(&words, {"--kv-tokens", absl::StrCat(start.kv_tokens)});
  }
  Add(&words, {"--kv-cache", file.model.kv_cache, "--activations", file.model.activations});
  if (file.model.bad_weights != topology::ClusterModel().bad_weights) {
    Add(&words, {"--bad-weights", file.model.bad_weights});
  }
  if (!replica.settings.interfaces.control.empty()) {
    Add(&words, {"--control-interface", replica.settings.interfaces.control});
  }
  AddTimes(replica, &words);
  if (!start.fault_folder.empty()) {
    Add(&words, {"--fault-injection", start.fault_folder});
  }
  for (size_t index = 0; index < file.replicas.size(); ++index) {
    if (file.replicas[index].name == replica.name) {
      AddMetrics(file, static_cast<int>(index), &words);
    }
  }
  return words;
}

std::vector<std::string> ReplicaWords(const ClusterFile& file, const ClusterReplica& replica,
                                      const ReplicaStart& start) {
  switch (replica.settings.launcher) {
    case topology::LauncherKind::kMpirun:
      return MpirunWords(file, replica, start);
    case topology::LauncherKind::kSrun:
      return SrunWords(file, replica, start);
    case topology::LauncherKind::kNone:
      break;
  }
  std::vector<std::string> words = {
      "env", absl::StrCat(kRunVariable, "=", RunTag(start.run_folder, replica.name, start.epoch))};
  const std::vector<std::string> serve = ServeWords(file, replica, start);
  words.insert(words.end(), serve.begin(), serve.end());
  return words;
}

std::vector<std::string> BalancerWords(const ClusterFile& file, absl::string_view name,
                                       absl::string_view listen, const ReplicaStart& start) {
  const topology::ClusterBalancer& balancer = *file.balancer;
  std::vector<std::string> replicas;
  for (const int index : balancer.replica_indices) {
    const ClusterReplica& replica = file.replicas[index];
    replicas.push_back(absl::StrCat(replica.name, "=", EngineAddress(file, replica)));
  }
  std::vector<std::string> words = {
      "env",
      absl::StrCat(kRunVariable, "=", RunTag(start.run_folder, name, start.epoch)),
      start.program,
      "balance",
      "--listen",
      std::string(listen),
      "--replicas",
      absl::StrJoin(replicas, ","),
      "--model",
      file.model.path,
      "--admin-listen",
      AdminAddress(start.run_folder, name),
      "--epoch",
      absl::StrCat(start.epoch),
      "--bounded-load",
      absl::StrCat(balancer.policy.bounded_load),
      "--explore",
      absl::StrCat(balancer.policy.explore),
      "--stale",
      absl::FormatDuration(balancer.policy.stale),
      "--retry-budget",
      absl::StrCat(balancer.retry.budget),
      "--attempts",
      absl::StrCat(balancer.retry.attempts + 1),  // the first one too
      "--resumes",
      absl::StrCat(balancer.retry.resumes),
      "--queue",
      absl::StrCat(balancer.limits.queue),
      "--resume-grace",
      absl::FormatDuration(balancer.resume_grace),
      "--kv-cache",
      file.model.kv_cache,
      "--activations",
      file.model.activations};
  if (file.model.context > 0) {
    Add(&words, {"--context-tokens", absl::StrCat(file.model.context)});
  }
  if (!start.topology_path.empty()) {
    Add(&words, {"--topology", start.topology_path});
  }
  if (!file.model.id.empty()) {
    Add(&words, {"--model-id", file.model.id});
  }
  for (size_t index = 0; index < balancer.listen.size(); ++index) {
    if (balancer.listen[index] == listen) {
      AddMetrics(file, static_cast<int>(file.replicas.size() + index), &words);
      break;
    }
  }
  return words;
}

std::string ShellText(absl::Span<const std::string> words) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,/:@%";
  std::vector<std::string> quoted;
  for (const std::string& word : words) {
    const bool is_plain =
        !word.empty() &&
        word.find_first_not_of(kPlain.data(), 0, kPlain.size()) == std::string::npos;
    quoted.push_back(
        is_plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'"));
  }
  return absl::StrJoin(quoted, " ");
}

}  // namespace trireme::launcher

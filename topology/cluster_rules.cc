#include "topology/cluster_rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "topology/cluster.h"
#include "topology/cluster_key.h"
#include "topology/file_problem.h"
#include "topology/nearest_word.h"
#include "topology/value_text.h"

namespace trireme::topology {
namespace {

bool IsLoopback(absl::string_view host) {
  return host == "localhost" || absl::StartsWith(host, "127.") || host == "::1" || host == "[::1]";
}

bool IsAnyAddress(absl::string_view host) { return host == "0.0.0.0" || host == "[::]"; }

std::string ReplicaPath(const ClusterReplica& replica) {
  return absl::StrCat("replicas.", replica.name);
}

std::string StagePath(const ClusterReplica& replica, size_t stage) {
  return absl::StrCat(ReplicaPath(replica), ".stages[", stage, "]");
}

class RuleChecker {
 public:
  RuleChecker(ClusterDraft* draft, const KeyPlaces& places, std::vector<FileProblem>* problems)
      : draft_(*draft), file_(draft->file), places_(places), problems_(*problems) {}

  void Check() {
    for (size_t i = 0; i < file_.replicas.size(); ++i) {
      ClusterReplica& replica = file_.replicas[i];
      const bool nodes_are_known = ResolveNodes(replica, draft_.stage_nodes[i]);
      CheckRanks(replica);
      CheckLayers(replica);
      CheckSettings(replica);
      if (nodes_are_known) {
        CheckCores(replica);
        CheckHosts(replica);
        CheckEngine(replica);
      }
    }
    CheckBalancer();
    if (const absl::StatusOr<Address> metrics = ParseAddress(file_.observe.metrics); metrics.ok()) {
      ClaimPort("localhost", *metrics, "observe.metrics");
    }
  }

 private:
  // At the path's own place, or at that of the nearest key above it. The same rule broken by
  // several replicas through one key of `defaults` is one problem.
  void Report(const std::string& path, std::string text) {
    if (reported_.insert({path, text}).second) {
      problems_.push_back({PlaceOfKey(places_, path), path, std::move(text)});
    }
  }

  // The path at which a replica's setting was said: its own, or the one of `defaults`.
  std::string SettingPath(const ClusterReplica& replica, const std::string& key) {
    const std::string own = absl::StrCat(ReplicaPath(replica), ".", key);
    return places_.count(own) > 0 ? own : absl::StrCat("defaults.", key);
  }

  std::string Unknown(absl::string_view name, absl::string_view kind,
                      const std::vector<std::string>& known) {
    const std::string nearest = NearestWord(name, known);
    return absl::StrCat("\"", name.substr(0, 80), "\" is no ", kind, "; ",
                        nearest.empty() ? absl::StrCat("there are: ", absl::StrJoin(known, ", "))
                                        : absl::StrCat("did you mean \"", nearest, "\"?"));
  }

  bool ResolveNodes(ClusterReplica& replica, const std::vector<std::string>& names) {
    std::vector<std::string> known;
    for (const ClusterNode& node : file_.nodes) {
      known.push_back(node.name);
    }
    bool all_known = !replica.stages.empty();
    for (size_t stage = 0; stage < names.size(); ++stage) {
      bool is_found = false;
      for (size_t node = 0; node < known.size(); ++node) {
        if (known[node] == names[stage]) {
          replica.stages[stage].node_index = static_cast<int>(node);
          is_found = true;
        }
      }
      if (!is_found && !names[stage].empty()) {
        Report(StagePath(replica, stage) + ".node", Unknown(names[stage], "node", known));
      }
      all_known = all_known && is_found;
    }
    return all_known;
  }

  void CheckRanks(const ClusterReplica& replica) {
    for (size_t stage = 1; stage < replica.stages.size(); ++stage) {
      if (replica.stages[stage].ranks != replica.stages[0].ranks) {
        Report(StagePath(replica, stage) + ".ranks",
               absl::StrFormat("%d tensor ranks, but %d in stages[0]; all stages of a replica have "
                               "the same number",
                               replica.stages[stage].ranks, replica.stages[0].ranks));
      }
    }
  }

  void CheckLayers(const ClusterReplica& replica) {
    int64_t next = 0;
    for (size_t stage = 0; stage < replica.stages.size(); ++stage) {
      const std::optional<Range>& layers = replica.stages[stage].layers;
      const std::string path = StagePath(replica, stage) + ".layers";
      if (layers.has_value() != replica.stages[0].layers.has_value()) {
        Report(path, "layers are given for some stages only; give them for all, or for none");
        return;
      }
      if (!layers.has_value()) {
        continue;
      }
      if (layers->begin != next) {
        Report(path,
               absl::StrFormat("begins with layer %d, which %s; %s must begin with layer %d",
                               layers->begin,
                               layers->begin < next ? "an earlier stage has, too" : "leaves a gap",
                               stage == 0 ? "the first stage" : "this stage", next));
      }
      next = std::max(next, layers->end);
    }
  }

  void CheckCores(const ClusterReplica& replica) {
    for (size_t index = 0; index < replica.stages.size(); ++index) {
      const ClusterStage& stage = replica.stages[index];
      const ClusterNode& node = file_.nodes[stage.node_index];
      const std::string path = StagePath(replica, index) + ".cores";
      for (const int core : stage.cores) {
        if (!node.cores.empty() && std::count(node.cores.begin(), node.cores.end(), core) == 0) {
          Report(path, absl::StrFormat("core %d is not among those of node %s (%s)", core,
                                       node.name, absl::StrJoin(node.cores, ",")));
        }
        const auto [first, is_new] = users_of_cores_.emplace(std::pair(node.host, core), path);
        if (!is_new) {
          Report(path, absl::StrFormat("core %d of host %s is in use already, by %s", core,
                                       node.host, first->second));
        }
      }
      const int cores = static_cast<int>(stage.cores.size());
      if (cores > 0 && cores < stage.ranks * std::max(stage.threads, 1)) {
        Report(path, absl::StrFormat("%d cores for %d ranks of %d threads; give at least %d", cores,
                                     stage.ranks, std::max(stage.threads, 1),
                                     stage.ranks * std::max(stage.threads, 1)));
      }
    }
  }

  void CheckHosts(const ClusterReplica& replica) {
    std::set<std::string> hosts;
    for (const ClusterStage& stage : replica.stages) {
      hosts.insert(file_.nodes[stage.node_index].host);
    }
    for (size_t stage = 0; stage < replica.stages.size() && hosts.size() > 1; ++stage) {
      const ClusterNode& node = file_.nodes[replica.stages[stage].node_index];
      if (IsLoopback(node.host)) {
        Report(absl::StrCat("nodes.", node.name, ".host"),
               absl::StrFormat("\"%s\" means another machine on each host that replica %s spans; "
                               "give the name that the others reach it by",
                               node.host, replica.name));
      }
    }
    if (hosts.size() > 1 && replica.settings.launcher == LauncherKind::kNone) {
      Report(
          SettingPath(replica, "launcher"),
          absl::StrFormat("none starts one process, but replica %s spans %d hosts; use mpirun or "
                          "srun",
                          replica.name, hosts.size()));
    }
  }

  void CheckSettings(const ClusterReplica& replica) {
    const ReplicaDefaults& settings = replica.settings;
    const HeartbeatTimes& heartbeat = settings.timeouts.heartbeat;
    if (heartbeat.suspect < heartbeat.period) {
      Report(SettingPath(replica, "timeouts.heartbeat.suspect"),
             absl::StrCat(absl::FormatDuration(heartbeat.suspect), " is shorter than the period, ",
                          absl::FormatDuration(heartbeat.period)));
    }
    if (heartbeat.dead <= heartbeat.suspect) {
      Report(SettingPath(replica, "timeouts.heartbeat.dead"),
             absl::StrCat(absl::FormatDuration(heartbeat.dead), " is not longer than suspect, ",
                          absl::FormatDuration(heartbeat.suspect)));
    }
    if (settings.restart.backoff_max < settings.restart.backoff_min) {
      Report(SettingPath(replica, "restart.backoff"), "the shortest wait stands first");
    }
    if (!settings.remote_agent.empty() && settings.launcher != LauncherKind::kMpirun) {
      Report(SettingPath(replica, "remote"),
             absl::StrCat("has no effect with launcher: ",
                          settings.launcher == LauncherKind::kSrun ? "srun" : "none",
                          "; only mpirun calls an agent"));
    }
  }

  void CheckEngine(const ClusterReplica& replica) {
    const absl::StatusOr<Address> address = ParseAddress(replica.engine_listen);
    if (!address.ok()) {
      return;  // reported, or missing
    }
    const std::string path = ReplicaPath(replica) + ".engine.listen";
    const std::string& host = file_.nodes[replica.stages[0].node_index].host;
    if (IsAnyAddress(address->host)) {
      Report(path, absl::StrFormat("\"%s\" tells nobody where to call; name the address that the "
                                   "balancer reaches it by",
                                   replica.engine_listen));
    } else if (IsLoopback(address->host) && !IsLoopback(host)) {
      Report(path, absl::StrFormat("\"%s\" can be reached on host %s alone; name an address that "
                                   "others reach",
                                   replica.engine_listen, host));
    }
    ClaimPort(host, *address, path);
  }

  // Addresses that overlap on one host may not have the same port.
  void ClaimPort(absl::string_view host, const Address& address, const std::string& path) {
    const std::string machine(IsLoopback(host) ? "localhost" : host);
    for (const auto& [other, other_path] : ports_[{machine, address.port}]) {
      if (other == address.host || IsAnyAddress(other) || IsAnyAddress(address.host)) {
        Report(path, absl::StrFormat("port %d on %s is taken already, by %s", address.port, machine,
                                     other_path));
        return;
      }
    }
    ports_[{machine, address.port}].emplace_back(address.host, path);
  }

  void CheckBalancer() {
    if (!file_.balancer.has_value()) {
      return;
    }
    ClusterBalancer& balancer = *file_.balancer;
    for (const std::string& listen : balancer.listen) {
      ClaimPort("localhost", *ParseAddress(listen), "balancer.listen.grpc");
    }
    std::vector<std::string> known;
    for (const ClusterReplica& replica : file_.replicas) {
      known.push_back(replica.name);
    }
    const std::vector<std::string>& names =
        draft_.balancer_replicas.empty() ? known : draft_.balancer_replicas;
    std::set<std::string> seen;
    for (const std::string& name : names) {
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) {
        Report("balancer.replicas", Unknown(name, "replica", known));
      } else if (!seen.insert(name).second) {
        Report("balancer.replicas", absl::StrCat("\"", name, "\" is named twice"));
      } else {
        balancer.replica_indices.push_back(static_cast<int>(found - known.begin()));
      }
    }
  }

  ClusterDraft& draft_;
  ClusterFile& file_;
  const KeyPlaces& places_;
  std::vector<FileProblem>& problems_;
  std::set<std::pair<std::string, std::string>> reported_;
  std::map<std::pair<std::string, int>, std::string> users_of_cores_;  // (host, core) -> path
  std::map<std::pair<std::string, int>, std::vector<std::pair<std::string, std::string>>> ports_;
};

}  // namespace

void ApplyClusterRules(ClusterDraft* draft, const KeyPlaces& places,
                       std::vector<FileProblem>* problems) {
  RuleChecker(draft, places, problems).Check();
}

}  // namespace trireme::topology

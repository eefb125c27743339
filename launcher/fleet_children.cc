#include "launcher/fleet_children.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/fleet_plan.h"
#include "launcher/replica_command.h"

namespace trireme::launcher {
namespace {

using topology::ClusterFile;
using topology::ClusterReplica;
using topology::LauncherKind;

// Ranks that watch each other name the culprit themselves; only then the supervisor steps in.
constexpr absl::Duration kRanksFirst = absl::Milliseconds(2500);
constexpr absl::Duration kBalancerSilence = absl::Seconds(3);

FleetStart StartOf(const FleetOptions& options, const std::string& folder) {
  return {.program = options.program,
          .run_folder = folder,
          .topology_path = options.topology_path,
          .cuts = options.cuts,
          .fault_folder = options.fault_folder};
}

bool IsHere(const std::string& host, const std::string& this_host) {
  return IsLoopbackHost(host) || host == this_host;
}

std::vector<std::string> AgentWords(const topology::ReplicaDefaults& settings,
                                    const std::string& host) {
  if (settings.launcher == LauncherKind::kSrun) {
    return {"srun",      "--overlap",  "--overcommit",
            "--nodes=1", "--ntasks=1", absl::StrCat("--nodelist=", host),
            "sh",        "-c"};
  }
  if (settings.remote_agent.empty()) {
    return {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", host};
  }
  return {settings.remote_agent, host};
}

std::vector<StartPhase> PhasesOf(const topology::ReplicaDefaults& settings) {
  const topology::ClusterTimeouts& timeouts = settings.timeouts;
  std::vector<StartPhase> phases = {{"launch", timeouts.launch}};
  if (settings.launcher != LauncherKind::kNone) {
    phases.push_back({"connect", timeouts.connect});
  }
  phases.push_back({"load", timeouts.load});
  phases.push_back({"warmup", timeouts.warmup});
  return phases;
}

FleetChild ReplicaChild(const FleetOptions& options, size_t index, const std::string& folder,
                        const std::string& this_host) {
  const ClusterReplica& replica = options.file.replicas[index];
  const topology::ReplicaDefaults& settings = replica.settings;
  const bool is_one_process = settings.launcher == LauncherKind::kNone;
  FleetChild child;
  child.rank_hosts =
      is_one_process ? std::vector<std::string>{"localhost"} : HostsOfRanks(options.file, replica);
  const int ranks = static_cast<int>(child.rank_hosts.size());
  const absl::Duration dead = settings.timeouts.heartbeat.dead;
  child.spec = {.name = replica.name,
                .kind = ChildKind::kReplica,
                .ranks = ranks,
                .phases = PhasesOf(settings),
                .drain = settings.drain,
                .restart = settings.restart,
                .silence = ranks > 1 ? dead + kRanksFirst : dead};
  child.listen = EngineAddress(options.file, replica);
  if (IsHere(child.rank_hosts[0], this_host)) {
    child.load_address = AdminAddress(folder, replica.name);
  }
  std::vector<std::string> hosts = child.rank_hosts;
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  for (const std::string& host : hosts) {
    if (!IsHere(host, this_host)) {
      child.remote_hosts.push_back({.host = host, .agent_words = AgentWords(settings, host)});
    }
  }
  // srun must tell its step; mpirun's ranks notice its death, even when it was stopped before.
  child.death_signal = settings.launcher == LauncherKind::kSrun ? SIGTERM : SIGKILL;
  child.words = [&options, index, folder](uint64_t epoch) {
    return ReplicaStartWords(options.file, StartOf(options, folder), index, epoch);
  };
  return child;
}

FleetChild BalancerChild(const FleetOptions& options, size_t index, const std::string& folder) {
  const ClusterFile& file = options.file;
  const topology::ReplicaDefaults& settings =
      file.replicas[file.balancer->replica_indices[0]].settings;
  FleetChild child;
  child.spec = {.name = BalancerName(index),
                .kind = ChildKind::kBalancer,
                .ranks = 1,
                .phases = {{"launch", settings.timeouts.launch}},
                .drain = settings.drain,
                .restart = settings.restart,
                .silence = kBalancerSilence};
  child.listen = file.balancer->listen[index];
  child.load_address = AdminAddress(folder, child.spec.name);
  child.rank_hosts = {"localhost"};
  child.death_signal = SIGKILL;
  child.words = [&options, index, folder](uint64_t epoch) {
    return BalancerStartWords(options.file, StartOf(options, folder), index, epoch);
  };
  return child;
}

}  // namespace

std::vector<FleetChild> MakeFleetChildren(const FleetOptions& options, const std::string& folder,
                                          const std::string& this_host) {
  std::vector<FleetChild> children;
  for (size_t index = 0; index < options.file.replicas.size(); ++index) {
    children.push_back(ReplicaChild(options, index, folder, this_host));
  }
  if (options.file.balancer.has_value()) {
    for (size_t index = 0; index < options.file.balancer->listen.size(); ++index) {
      children.push_back(BalancerChild(options, index, folder));
    }
  }
  return children;
}

std::string ReachableAddress(absl::string_view listen, int port) {
  const size_t colon = listen.rfind(':');
  if (colon == absl::string_view::npos) {
    return std::string(listen);
  }
  absl::string_view host = listen.substr(0, colon);
  absl::string_view stated = listen.substr(colon + 1);
  if (host == "0.0.0.0" || host.empty()) {
    host = "127.0.0.1";
  } else if (host == "[::]") {
    host = "[::1]";
  }
  return stated == "0" && port > 0 ? absl::StrCat(host, ":", port)
                                   : absl::StrCat(host, ":", stated);
}

}  // namespace trireme::launcher

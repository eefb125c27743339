#include "launcher/fleet_plan.h"

#include <limits.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "launcher/replica_command.h"

namespace trireme::launcher {
namespace {

ReplicaStart StartOf(const FleetStart& start, uint64_t epoch) {
  return {.program = start.program,
          .run_folder = start.run_folder,
          .topology_path = start.topology_path,
          .epoch = epoch,
          .is_root = ::geteuid() == 0,
          .fault_folder = start.fault_folder};
}

}  // namespace

std::vector<ReplicaCut> CutsOf(const ClusterPlan& plan) {
  std::vector<ReplicaCut> cuts;
  for (const PlannedReplica& replica : plan.replicas) {
    cuts.push_back({.stage_layers = replica.options.layout.stage_layers,
                    .kv_tokens = replica.capacity.tokens});
  }
  return cuts;
}

std::vector<std::string> ReplicaStartWords(const topology::ClusterFile& file,
                                           const FleetStart& start, size_t index, uint64_t epoch) {
  ReplicaStart replica_start = StartOf(start, epoch);
  if (index < start.cuts.size()) {
    replica_start.stage_layers = start.cuts[index].stage_layers;
    replica_start.kv_tokens = start.cuts[index].kv_tokens;
  }
  return ReplicaWords(file, file.replicas[index], replica_start);
}

std::vector<std::string> BalancerStartWords(const topology::ClusterFile& file,
                                            const FleetStart& start, size_t index, uint64_t epoch) {
  return BalancerWords(file, BalancerName(index), file.balancer->listen[index],
                       StartOf(start, epoch));
}

std::string BalancerName(size_t index) { return absl::StrCat("balancer", index + 1); }

std::vector<std::string> FleetCommandLines(const topology::ClusterFile& file,
                                           const FleetStart& start, uint64_t last_epoch) {
  std::vector<std::string> lines;
  uint64_t epoch = last_epoch;
  for (size_t index = 0; index < file.replicas.size(); ++index) {
    lines.push_back(ShellText(ReplicaStartWords(file, start, index, ++epoch)));
  }
  const size_t balancers = file.balancer.has_value() ? file.balancer->listen.size() : 0;
  for (size_t index = 0; index < balancers; ++index) {
    lines.push_back(ShellText(BalancerStartWords(file, start, index, ++epoch)));
  }
  return lines;
}

std::string AbsolutePath(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string OwnPath() {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? path.substr(0, static_cast<size_t>(length)) : "trireme";
}

}  // namespace trireme::launcher

#include "launcher/serve_flags.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "launcher/core_list.h"
#include "runtime/base/status_macros.h"

ABSL_FLAG(std::string, replica, "", "name of this replica in its fleet, as in --replica r1");
ABSL_FLAG(uint64_t, epoch, 0,
          "number of this start, as in --epoch 3; requests meant for another one are refused");
ABSL_FLAG(int32_t, launch_ms, 60000, "milliseconds until all ranks stand in MPI");
ABSL_FLAG(int32_t, connect_ms, 45000, "milliseconds until all ranks are connected");
ABSL_FLAG(int32_t, heartbeat_ms, 250, "milliseconds between heartbeats of ranks");
ABSL_FLAG(int32_t, suspect_ms, 1000, "milliseconds of silence after which a rank is suspect");
ABSL_FLAG(int32_t, dead_ms, 2500, "milliseconds of silence after which a rank is lost");
ABSL_FLAG(int32_t, stall_ms, 10000,
          "milliseconds in which a step must finish, or 50 times the median step if that is more");
ABSL_FLAG(int32_t, drain_announce_ms, 2000,
          "milliseconds from NOT_SERVING until a drain refuses new requests");
ABSL_FLAG(int32_t, drain_ms, 120000, "milliseconds that streams may still run in a drain");
ABSL_FLAG(std::string, control_interface, "",
          "network interface for connections between hosts, as in --control-interface eth0; "
          "empty: any that answers");
ABSL_FLAG(std::string, rank_cores, "",
          "cores of each rank, as in --rank-cores 0-1/2-3 for two ranks; empty: not bound");
ABSL_FLAG(std::string, fault_injection, "",
          "folder in which a test says where this process is to fail, as in --fault-injection "
          "/tmp/faults; health says so; empty: nowhere");

namespace trireme::launcher {
namespace {

constexpr int32_t kMillisecondsMax = 24 * 3600 * 1000;

absl::StatusOr<absl::Duration> Milliseconds(const char* flag, int32_t value) {
  if (value < 1 || value > kMillisecondsMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--%s is %d; it must be between 1 and %d", flag, value, kMillisecondsMax));
  }
  return absl::Milliseconds(value);
}

absl::StatusOr<std::vector<std::vector<int>>> RankCores(int ranks) {
  std::vector<std::vector<int>> cores;
  const std::string text = absl::GetFlag(FLAGS_rank_cores);
  if (text.empty()) {
    return cores;
  }
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    absl::StatusOr<std::vector<int>> of_rank = ParseCoreList(part);
    if (!of_rank.ok()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--rank-cores: %s", of_rank.status().message()));
    }
    cores.push_back(*std::move(of_rank));
  }
  if (static_cast<int>(cores.size()) != ranks) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--rank-cores names cores for %d ranks; there are %d", cores.size(), ranks));
  }
  return cores;
}

absl::StatusOr<engine::LinkOptions> Links(absl::Duration connect_limit) {
  engine::LinkOptions links;
  links.interface = absl::GetFlag(FLAGS_control_interface);
  // Shorter than the whole phase, so that the error can name the rank that did not come.
  links.connect_timeout = connect_limit * 2 / 3;
  comm::MonitorOptions& monitor = links.monitor;
  ASSIGN_OR_RETURN(monitor.heartbeat_period,
                   Milliseconds("heartbeat-ms", absl::GetFlag(FLAGS_heartbeat_ms)));
  ASSIGN_OR_RETURN(monitor.suspect_after,
                   Milliseconds("suspect-ms", absl::GetFlag(FLAGS_suspect_ms)));
  ASSIGN_OR_RETURN(monitor.dead_after, Milliseconds("dead-ms", absl::GetFlag(FLAGS_dead_ms)));
  ASSIGN_OR_RETURN(monitor.stall_timeout, Milliseconds("stall-ms", absl::GetFlag(FLAGS_stall_ms)));
  if (monitor.heartbeat_period >= monitor.suspect_after ||
      monitor.suspect_after >= monitor.dead_after) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--heartbeat-ms, --suspect-ms and --dead-ms must rise; they are %d, %d and %d",
        absl::GetFlag(FLAGS_heartbeat_ms), absl::GetFlag(FLAGS_suspect_ms),
        absl::GetFlag(FLAGS_dead_ms)));
  }
  return links;
}

}  // namespace

std::vector<const char*> ServeFlags(std::vector<const char*> further) {
  for (const char* name : {"replica", "epoch", "launch_ms", "connect_ms", "heartbeat_ms",
                           "suspect_ms", "dead_ms", "stall_ms", "drain_announce_ms", "drain_ms",
                           "control_interface", "rank_cores", "fault_injection"}) {
    further.push_back(name);
  }
  return further;
}

absl::StatusOr<ServeFlagValues> ReadServeFlags(int ranks) {
  ServeFlagValues values;
  values.replica = absl::GetFlag(FLAGS_replica);
  values.epoch = absl::GetFlag(FLAGS_epoch);
  values.fault_folder = absl::GetFlag(FLAGS_fault_injection);
  ASSIGN_OR_RETURN(values.launch_limit, Milliseconds("launch-ms", absl::GetFlag(FLAGS_launch_ms)));
  ASSIGN_OR_RETURN(values.connect_limit,
                   Milliseconds("connect-ms", absl::GetFlag(FLAGS_connect_ms)));
  ASSIGN_OR_RETURN(values.drain_announce,
                   Milliseconds("drain-announce-ms", absl::GetFlag(FLAGS_drain_announce_ms)));
  ASSIGN_OR_RETURN(values.drain_deadline, Milliseconds("drain-ms", absl::GetFlag(FLAGS_drain_ms)));
  ASSIGN_OR_RETURN(values.links, Links(values.connect_limit));
  ASSIGN_OR_RETURN(values.rank_cores, RankCores(ranks));
  return values;
}

int RankFromEnvironment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* const value = std::getenv(name);
    int rank = 0;
    if (value != nullptr && absl::SimpleAtoi(value, &rank)) {
      return rank;
    }
  }
  return 0;
}

}  // namespace trireme::launcher

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/fleet_file.h"
#include "launcher/fleet_service.h"
#include "launcher/fleet_view.h"
#include "launcher/run_folder.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"

ABSL_FLAG(std::string, admin, "",
          "admin address of the supervisor, as in --admin unix:/run/trireme/laptop/admin.sock; "
          "empty: that of the file, or of the only fleet that runs here");
ABSL_FLAG(bool, restart, false, "start it again at once");
ABSL_FLAG(int32_t, interval_ms, 1000, "milliseconds between two tables");
ABSL_FLAG(int32_t, rounds, 0, "tables to print; 0: until it is interrupted");
ABSL_DECLARE_FLAG(bool, json);

namespace trireme::launcher {
namespace {

// `file` may be empty: then --admin must say where the supervisor is.
absl::StatusOr<std::string> AdminOf(const std::string& file) {
  if (const std::string given = absl::GetFlag(FLAGS_admin); !given.empty()) {
    return given;
  }
  if (file.empty()) {
    return absl::InvalidArgumentError(
        "name the topology file, or the supervisor's address with --admin unix:PATH");
  }
  ASSIGN_OR_RETURN(const topology::ClusterFile cluster, ReadFleetFile(file));
  return FleetAdminAddress(cluster);
}

ExitCode FailCall(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return Fail(ExitCode::kPeerLost, status);
    case absl::StatusCode::kDeadlineExceeded:
      return Fail(ExitCode::kStalled, status);
    default:
      return Fail(ExitCode::kUsage, status);
  }
}

// Of AdminOf(`file`): without a file the command line is at fault, else the file is.
ExitCode FailAdmin(const std::string& file, const absl::Status& status) {
  return file.empty() ? Fail(ExitCode::kUsage, status) : FailFleetFile(status);
}

bool IsWhole(const FleetView& fleet) {
  for (const ChildView& child : fleet.children) {
    if (child.state != "serving") {
      return false;
    }
  }
  return true;
}

ExitCode RunStatus(const std::vector<std::string>& words) {
  const std::string file = words.empty() ? "" : words[0];
  const absl::StatusOr<std::string> admin = AdminOf(file);
  if (!admin.ok()) {
    return FailAdmin(file, admin.status());
  }
  const absl::StatusOr<FleetView> fleet = GetFleet(*admin);
  if (!fleet.ok()) {
    return FailCall(fleet.status());
  }
  absl::PrintF("%s", absl::GetFlag(FLAGS_json) ? FleetJson(*fleet) + "\n" : FleetTable(*fleet));
  return IsWhole(*fleet) ? ExitCode::kOk : ExitCode::kStalled;
}

// FILE NAME, or NAME with --admin.
ExitCode RunDrain(const std::vector<std::string>& words) {
  const bool has_admin = !absl::GetFlag(FLAGS_admin).empty();
  if (words.size() != (has_admin ? 1 : 2)) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError("name the topology file (or give --admin) and what is "
                                           "to drain, as in trireme drain laptop.yaml r1"));
  }
  const absl::StatusOr<std::string> admin = AdminOf(words[0]);
  if (!admin.ok()) {
    return FailAdmin(words[0], admin.status());
  }
  const bool restart = absl::GetFlag(FLAGS_restart);
  const std::string& name = words.back();
  if (name == "all" && !restart) {
    const absl::Status status = StopFleet(*admin);
    return status.ok() ? ExitCode::kOk : FailCall(status);
  }
  const absl::Status status = DrainChild(*admin, name == "all" ? "" : name, restart);
  return status.ok() ? ExitCode::kOk : FailCall(status);
}

ExitCode RunTop(const std::vector<std::string>& words) {
  const std::string path = words.empty() ? "" : words[0];
  const absl::StatusOr<std::string> admin = AdminOf(path);
  if (!admin.ok()) {
    return FailAdmin(path, admin.status());
  }
  const int32_t interval_ms = absl::GetFlag(FLAGS_interval_ms);
  if (interval_ms < 100) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError(
                    absl::StrFormat("--interval-ms is %d; it must be at least 100", interval_ms)));
  }
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  Mutex mutex;
  ConditionVariable never;
  for (int round = 1;; ++round) {
    const absl::StatusOr<FleetView> fleet = GetFleet(*admin);
    if (!fleet.ok()) {
      return FailCall(fleet.status());
    }
    if (is_terminal) {
      absl::PrintF("\x1b[H\x1b[2J");  // home, and an empty screen
    }
    absl::PrintF("%s", FleetLoadTable(*fleet));
    std::fflush(stdout);
    if (round == absl::GetFlag(FLAGS_rounds)) {
      return ExitCode::kOk;
    }
    MutexLock lock(&mutex);
    never.WaitFor(&mutex, absl::Milliseconds(interval_ms));
  }
}

}  // namespace

Subcommand StatusSubcommand() {
  return {.name = "status",
          .summary = "Show what a running fleet's children do; exit 0 when all of them serve",
          .synopsis = "FILE | --admin unix:PATH [--json]",
          .example = "trireme status deploy/topologies/laptop.yaml --json",
          .flags = {"admin", "json"},
          .words_max = 1,
          .run = RunStatus};
}

Subcommand DrainSubcommand() {
  return {.name = "drain",
          .summary = "Let a replica, a balancer or the whole fleet (all) finish and end",
          .synopsis = "FILE NAME [--restart] | --admin unix:PATH NAME [--restart]",
          .example = "trireme drain deploy/topologies/laptop.yaml r1 --restart",
          .flags = {"admin", "restart"},
          .words_max = 2,
          .run = RunDrain};
}

Subcommand TopSubcommand() {
  return {.name = "top",
          .summary = "Show a running fleet's load, again and again",
          .synopsis = "FILE | --admin unix:PATH [--interval-ms N] [--rounds N]",
          .example = "trireme top deploy/topologies/laptop.yaml",
          .flags = {"admin", "interval_ms", "rounds"},
          .words_max = 1,
          .run = RunTop};
}

}  // namespace trireme::launcher

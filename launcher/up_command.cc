#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/fleet_metrics.h"
#include "launcher/fleet_plan.h"
#include "launcher/fleet_runner.h"
#include "launcher/fleet_view.h"
#include "launcher/opened_fleet.h"
#include "launcher/process_limits.h"
#include "launcher/replica_plan.h"
#include "launcher/run_folder.h"
#include "launcher/version.h"
#include "runtime/base/log.h"
#include "runtime/base/metrics.h"

ABSL_FLAG(bool, plain, false, "log lines instead of the live table, on a terminal too");
ABSL_DECLARE_FLAG(std::string, fault_injection);

namespace trireme::launcher {
namespace {

// Logs, pipes, sockets and a watch for each child, and room for operators.
constexpr int64_t kFilesWanted = 256;
constexpr int64_t kFilesOfChild = 16;
constexpr int64_t kThreadsOfChild = 3;  // its watch, and the launchers of MPI

LogLevel LevelOf(const std::string& name) {
  if (name == "debug") {
    return LogLevel::kDebug;
  }
  if (name == "warning" || name == "warn") {
    return LogLevel::kWarning;
  }
  return name == "error" ? LogLevel::kError : LogLevel::kInfo;
}

// A table that is drawn over itself; log lines go to a file meanwhile.
class Screen {
 public:
  explicit Screen(const std::string& log_path) {
    std::fflush(stderr);
    const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log >= 0) {
      ::dup2(log, STDERR_FILENO);
      ::close(log);
    }
    absl::PrintF("Log: %s\n", log_path);
  }

  void Show(const FleetView& view) {
    const bool is_starting =
        std::any_of(view.children.begin(), view.children.end(),
                    [](const ChildView& child) { return child.state == "starting"; });
    const std::string table = is_starting ? FleetTable(view) : FleetLoadTable(view);
    if (table == shown_) {
      return;
    }
    for (size_t line = 0; line < lines_; ++line) {
      absl::PrintF("\x1b[A\x1b[2K");  // up a line, and empty it
    }
    absl::PrintF("%s", table);
    std::fflush(stdout);
    lines_ = static_cast<size_t>(std::count(table.begin(), table.end(), '\n'));
    shown_ = table;
  }

 private:
  std::string shown_;
  size_t lines_ = 0;
};

ExitCode CodeOfFolder(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) {
    return ExitCode::kPortUnavailable;  // taken, like a port
  }
  return absl::IsPermissionDenied(status) ? ExitCode::kPermission : ExitCode::kInputOutput;
}

ExitCode RunUp(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError("name a topology file, as in trireme up "
                                           "deploy/topologies/laptop.yaml"));
  }
  BlockFleetSignals();
  OpenedFleet fleet;
  const ExitCode opened = OpenFleet(words[0], {.want_speed = false}, &fleet);
  if (opened != ExitCode::kOk) {
    return opened;
  }
  if (const ExitCode fit = ReportMisfits(fleet.plan); fit != ExitCode::kOk) {
    return fit;
  }
  const size_t balancers = fleet.file.balancer.has_value() ? fleet.file.balancer->listen.size() : 0;
  const auto children = static_cast<int64_t>(fleet.file.replicas.size() + balancers);
  absl::Status limits = RaiseOpenFiles(kFilesWanted + kFilesOfChild * children);
  limits.Update(CheckThreads(ThreadsOfProcess(kThreadsOfChild * children)));
  if (!limits.ok()) {
    return Fail(ExitCode::kOsError, limits);
  }
  const auto folder = RunFolder::Open(RunFolderOf(fleet.file));
  if (!folder.ok()) {
    return Fail(CodeOfFolder(folder.status()), folder.status());
  }
  SetLogLevel(LevelOf(fleet.file.observe.log_level));
  SetLogForm(fleet.file.observe.log_json ? LogForm::kJson : LogForm::kText);
  FleetOptions options = {
      .file = std::move(fleet.file),
      .cuts = CutsOf(fleet.plan),
      .program = OwnPath(),
      .topology_path = AbsolutePath(words[0]),
      .fault_folder = absl::GetFlag(FLAGS_fault_injection)};
  std::unique_ptr<Screen> screen;
  if (::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1 && !absl::GetFlag(FLAGS_plain)) {
    screen = std::make_unique<Screen>((*folder)->LogPath("supervisor"));
    options.on_view = [&screen](const FleetView& view) { screen->Show(view); };
  }
  Metrics metrics;
  FleetMetrics fleet_metrics(&metrics);
  if (!options.file.observe.metrics.empty()) {
    metrics.Gauge("trireme_build_info", {{"version", VersionNumber()}}).Set(1);
    if (const auto port = metrics.Listen(options.file.observe.metrics); !port.ok()) {
      return Fail(ExitCode::kPortUnavailable, port.status());
    }
    options.on_view = [show = std::move(options.on_view), &fleet_metrics](const FleetView& view) {
      fleet_metrics.Set(view);
      if (show != nullptr) {
        show(view);
      }
    };
  }
  Log(LogLevel::kInfo, absl::StrFormat("fleet %s starts run_folder=%s admin=%s", options.file.name,
                                       (*folder)->path(), FleetAdminAddress(options.file)));
  const ExitCode code = RunFleet(options, folder->get());
  Log(LogLevel::kInfo, absl::StrFormat("fleet ended code=%d", static_cast<int>(code)));
  return code;
}

}  // namespace

Subcommand UpSubcommand() {
  return {.name = "up",
          .summary = "Start the fleet of a topology file, and keep it running",
          .synopsis = "FILE [--plain]",
          .example = "trireme up deploy/topologies/laptop.yaml",
          .flags = {"plain", "fault_injection"},
          .words_max = 1,
          .run = RunUp};
}

}  // namespace trireme::launcher

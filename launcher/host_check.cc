#include "launcher/host_check.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "runtime/comm/region.h"

namespace trireme::launcher {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr absl::Duration kClockErrorMax = absl::Seconds(2);  // beyond, logs cannot be compared

// Open MPI's own segment of each process (btl_vader's, 4 MiB, and its session's files).
constexpr int64_t kMpiSharedBytes = int64_t{5} << 20;

// Libraries, log, model, admin socket and gRPC's own descriptors; then the peers; then clients.
constexpr int64_t kOwnFiles = 64;
constexpr int64_t kFilesOfPeer = 4;
constexpr int64_t kClientFiles = 128;

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / kMebibyte);
}

void CheckCores(const HostNeeds& needs, const HostReport& report, std::vector<Finding>* findings) {
  const std::set<int> usable(report.cores.begin(), report.cores.end());
  std::vector<int> absent;
  for (const int core : needs.cores) {
    if (usable.count(core) == 0) {
      absent.push_back(core);
    }
  }
  if (!absent.empty()) {
    findings->push_back(
        {.code = ExitCode::kBadConfiguration,
         .text = absl::StrFormat("core %s cannot be used there; it has %s",
                                 absl::StrJoin(absent, ","), absl::StrJoin(report.cores, ",")),
         .fix = "name other cores in the stage, or widen the container's cpuset"});
  }
  if (needs.threads > static_cast<int>(report.cores.size())) {
    findings->push_back({.is_error = false,
                         .text = absl::StrFormat("%d threads on %d cores: they will take turns",
                                                 needs.threads, report.cores.size()),
                         .fix = "fewer ranks or threads there, or more cores"});
  }
}

void CheckPorts(const HostReport& report, std::vector<Finding>* findings) {
  for (const auto& [address, reason] : report.ports) {
    if (!reason.empty()) {
      findings->push_back({.code = ExitCode::kPortUnavailable,
                           .text = absl::StrCat("cannot listen at ", address, ": ", reason),
                           .fix = "end what listens there (ss -ltnp), or name another address"});
    }
  }
}

void CheckModel(const HostNeeds& needs, const HostReport& report, std::vector<Finding>* findings) {
  if (!report.model_error.empty()) {
    findings->push_back(
        {.code = static_cast<ExitCode>(report.model_error_code),
         .text = report.model_error,
         .fix = absl::StrCat("put the model at ", needs.model_path,
                             " there (launcher/default_model.sh fetches the default one)")});
  } else if (report.model_fingerprint != needs.model_fingerprint) {
    findings->push_back(
        {.code = ExitCode::kRankDisagreement,
         .text = absl::StrFormat("%s is another model there than on %s (%016x, not %016x)",
                                 needs.model_path, needs.model_host, report.model_fingerprint,
                                 needs.model_fingerprint),
         .fix = "copy one file to all hosts"});
  }
}

}  // namespace

int64_t SharedMemoryOfStage(int tensor_ranks) {
  return (tensor_ranks > 1 ? comm::Region::Bytes(tensor_ranks) : 0) +
         tensor_ranks * kMpiSharedBytes;
}

int64_t OpenFilesOfRank(int ranks) { return kOwnFiles + kFilesOfPeer * ranks + kClientFiles; }

std::vector<Finding> JudgeHost(const HostNeeds& needs, const HostReport& report,
                               absl::Duration clock_error) {
  std::vector<Finding> findings;
  if (report.version != needs.version) {
    findings.push_back(
        {.code = ExitCode::kRankDisagreement,
         .text = absl::StrFormat("has \"%s\", this host \"%s\"", report.version, needs.version),
         .fix = "install the same build on all hosts"});
  }
  CheckModel(needs, report, &findings);
  if (report.memory_available_bytes < needs.memory_bytes) {
    findings.push_back({.code = ExitCode::kDoesNotFit,
                        .text = absl::StrFormat("its ranks need %s, it has %s available",
                                                Mebibytes(needs.memory_bytes),
                                                Mebibytes(report.memory_available_bytes)),
                        .fix = "trireme plan says what would fit; or end other programs there"});
  }
  CheckCores(needs, report, &findings);
  if (report.shared_memory_free_bytes < needs.shared_memory_bytes) {
    findings.push_back({.code = ExitCode::kOsError,
                        .text = absl::StrFormat("/dev/shm has %s free, its ranks need %s",
                                                Mebibytes(report.shared_memory_free_bytes),
                                                Mebibytes(needs.shared_memory_bytes)),
                        .fix = "remove old segments there, or enlarge it (mount -o "
                               "remount,size=..., docker run --shm-size)"});
  }
  if (report.open_files_max < needs.open_files) {
    findings.push_back({.code = ExitCode::kOsError,
                        .text = absl::StrFormat("a process may open %d files, %d are needed",
                                                report.open_files_max, needs.open_files),
                        .fix = absl::StrFormat("ulimit -n %d, or LimitNOFILE= in the unit",
                                               std::max<int64_t>(1024, needs.open_files))});
  }
  if (report.threads_max < needs.all_threads) {
    findings.push_back({.code = ExitCode::kOsError,
                        .text = absl::StrFormat("%d threads may run there, %d are needed",
                                                report.threads_max, needs.all_threads),
                        .fix = "ulimit -u, TasksMax= in the unit, or docker run --pids-limit"});
  }
  CheckPorts(report, &findings);
  if (absl::AbsDuration(clock_error) > kClockErrorMax) {
    findings.push_back(
        {.is_error = false,
         .text = absl::StrFormat("its clock is %s %s",
                                 absl::FormatDuration(absl::Trunc(absl::AbsDuration(clock_error),
                                                                  absl::Milliseconds(100))),
                                 clock_error > absl::ZeroDuration() ? "ahead" : "behind"),
         .fix = "let NTP set it; logs of hosts cannot be compared otherwise"});
  }
  return findings;
}

}  // namespace trireme::launcher

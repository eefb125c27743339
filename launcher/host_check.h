// Whether a host can run its ranks: what they need against what the host reports, each finding with
// its fix. Pure; check_command.cc asks the hosts.
#ifndef TRIREME_LAUNCHER_HOST_CHECK_H_
#define TRIREME_LAUNCHER_HOST_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "launcher/exit_codes.h"
#include "launcher/host_report.h"

namespace trireme::launcher {

struct HostNeeds {
  std::string version;
  uint64_t model_fingerprint = 0;  // of the host that is compared with
  std::string model_host;          // its name
  std::string model_path;
  int64_t memory_bytes = 0;         // of all ranks here
  std::vector<int> cores;           // that ranks are bound to
  int threads = 0;                  // of all ranks here together, that compute
  int64_t all_threads = 0;          // with those besides
  int64_t shared_memory_bytes = 0;  // in /dev/shm
  int64_t open_files = 0;           // of the process that needs the most
};

struct Finding {
  bool is_error = true;  // false: worth knowing, starts nevertheless
  ExitCode code = ExitCode::kOk;
  std::string text;  // what is wrong, with the numbers
  std::string fix;
};

// In the order in which a start would stumble over them; empty: all good. `clock_error` is how far
// the host's clock is ahead of this one's, as far as that can be known.
std::vector<Finding> JudgeHost(const HostNeeds& needs, const HostReport& report,
                               absl::Duration clock_error);

// /dev/shm that the ranks of one stage need, and that Open MPI takes besides for each of them.
int64_t SharedMemoryOfStage(int tensor_ranks);

// Descriptors of a process: those of a rank, or of a balancer at its documented load.
int64_t OpenFilesOfRank(int ranks);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_HOST_CHECK_H_

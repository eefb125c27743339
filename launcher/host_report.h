// What one host has to offer, looked at on that host: `trireme check` asks every host of a topology
// file for it, through a line of JSON.
#ifndef TRIREME_LAUNCHER_HOST_REPORT_H_
#define TRIREME_LAUNCHER_HOST_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::launcher {

struct HostReport {
  std::string host;          // its own name
  std::string version;       // first line of `trireme --version`
  std::string model_error;   // empty: the model opened
  int model_error_code = 0;  // an exit code
  uint64_t model_fingerprint = 0;
  int64_t memory_available_bytes = 0;
  std::vector<int> cores;                // that this program may use
  int64_t shared_memory_free_bytes = 0;  // in /dev/shm
  int64_t open_files_max = 0;
  int64_t threads_max = 0;  // of all processes together
  int64_t clock_unix_ns = 0;
  std::map<std::string, std::string> ports;  // address -> why it cannot be listened at; "": it can
};

// Looks at this host. Never fails: what is not there is what it reports.
HostReport LookAtThisHost(const std::string& model_path, const std::vector<std::string>& addresses);

// One line of JSON, and back. InvalidArgument for anything else.
std::string EncodeHostReport(const HostReport& report);
absl::StatusOr<HostReport> DecodeHostReport(absl::string_view text);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_HOST_REPORT_H_

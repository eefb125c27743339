// What a supervisor reads from the log of a child: how far each rank's start is, that it serves,
// that it is lost. The log is the one way that works under every launcher and on every host.
#ifndef TRIREME_LAUNCHER_CHILD_LOG_H_
#define TRIREME_LAUNCHER_CHILD_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace trireme::launcher {

struct ChildLogEvent {
  enum class Kind : uint8_t { kPhase, kLoading, kServing, kLost, kError };
  Kind kind = Kind::kPhase;
  int rank = 0;         // 0 where the line names none
  std::string phase;    // kPhase
  std::string host;     // kPhase, where the line says it
  int64_t process = 0;  // kPhase, where the line says it
  int percent = 0;      // kLoading
  int64_t bytes = 0;    // kLoading
  int port = 0;         // kServing
  std::string text;     // kLost, kError: why
};

// Nothing for lines that say none of these. Pure.
std::optional<ChildLogEvent> ParseChildLogLine(absl::string_view line);

// Reads a file that grows. One thread.
class LogFollower {
 public:
  // From the end that the file has now; one that does not exist yet is empty.
  explicit LogFollower(std::string path);

  // The whole lines that were added since the last call, 1 MiB at most.
  std::vector<std::string> TakeLines();

 private:
  const std::string path_;
  int64_t offset_ = 0;
  std::string partial_;
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_CHILD_LOG_H_

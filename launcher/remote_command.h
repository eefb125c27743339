// A command run on a host, here or through ssh or an agent, with its output and a deadline.
#ifndef TRIREME_LAUNCHER_REMOTE_COMMAND_H_
#define TRIREME_LAUNCHER_REMOTE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trireme::launcher {

// The words that run `words` on `host`: AGENT HOST COMMAND, or ssh's when `agent` is empty. ssh
// asks nothing and gives up after 10 s.
std::vector<std::string> WordsOnHost(const std::vector<std::string>& words, const std::string& host,
                                     const std::string& agent);

struct CommandOutput {
  int exit_code = 0;   // 128 + signal when a signal ended it
  std::string output;  // the first MiB of it
  std::string errors;
};

// Runs it without input and waits for its end. NotFound when there is no such program,
// DeadlineExceeded when it had to be killed. Any thread.
absl::StatusOr<CommandOutput> RunToItsEnd(const std::vector<std::string>& words,
                                          absl::Duration limit);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_REMOTE_COMMAND_H_

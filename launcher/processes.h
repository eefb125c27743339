// Processes of this host as a supervisor needs them: started so that they never outlive it, found
// again by the run tag in their environment, whoever their parent is now.
#ifndef TRIREME_LAUNCHER_PROCESSES_H_
#define TRIREME_LAUNCHER_PROCESSES_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::launcher {

struct ProcessStart {
  std::vector<std::string> words;
  std::string log_path;  // gets stdout and stderr, at its end
  int death_signal = 0;  // sent to it when the calling thread dies; 0: none
};

// In a session of its own, with no input and no signal blocked. The caller waits for it (waitpid).
// NotFound when there is no such program, Unknown for other refusals; both name the first word.
absl::StatusOr<pid_t> StartProcess(const ProcessStart& start);

// Living processes whose TRIREME_RUN begins with `tag_prefix`, this one left out; zombies do not
// live.
std::vector<pid_t> FindTaggedProcesses(absl::string_view tag_prefix);

// A script for `sh` that kills those of its own host, again and again, for at most 5 s; it exits
// with 0 when none is left.
std::string SweepScript(absl::string_view tag_prefix);

// 'R', 'S', 'T' (stopped), ... of /proc; 0 when there is no such process here.
char ProcessState(pid_t process);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_PROCESSES_H_

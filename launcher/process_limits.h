// What the system lets processes have and a start can run out of: open files, and threads.
#ifndef TRIREME_LAUNCHER_PROCESS_LIMITS_H_
#define TRIREME_LAUNCHER_PROCESS_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace trireme::launcher {

// Of one process, now; INT64_MAX: not limited.
int64_t OpenFilesMax();

// Threads of all processes together, the smaller of what this user may have (RLIMIT_NPROC, which
// does not bind root) and what this container or unit has left; INT64_MAX: not limited.
int64_t ThreadsMax();

// What the control groups leave: `groups` is the text of /proc/self/cgroup, `mount` where the
// groups are mounted. Version 1 and 2; INT64_MAX where none limits.
int64_t ThreadsOfGroups(absl::string_view groups, const std::string& mount);

// As many open files as this process may have; children inherit it. FailedPrecondition, naming the
// limit and what to do, when those are fewer than `wanted`.
absl::Status RaiseOpenFiles(int64_t wanted);

// FailedPrecondition, naming the limit and what to do, when `wanted` threads are more than may be.
absl::Status CheckThreads(int64_t wanted);

// Threads of a process that computes with `computing` of them: with the service's, the links' and
// the library's own.
int64_t ThreadsOfProcess(int64_t computing);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_PROCESS_LIMITS_H_

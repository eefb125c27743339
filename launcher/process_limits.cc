#include "launcher/process_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace trireme::launcher {
namespace {

// gRPC's pollers and timers, the pump, the link, the log: fifteen on two cores, a few more on many.
constexpr int64_t kThreadsBesides = 32;

int64_t LimitOf(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit = {};
  ::getrlimit(resource, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? INT64_MAX : static_cast<int64_t>(limit.rlim_cur);
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// The number in a file; false where there is none ("max", or no such file).
bool ReadNumber(const std::string& path, int64_t* number) {
  return absl::SimpleAtoi(TextOf(path), number);
}

// Of one group and of all that it lies in.
int64_t ThreadsLeft(const std::string& mount, std::string group) {
  int64_t left = INT64_MAX;
  while (true) {
    const std::string folder = absl::StrCat(mount, group == "/" ? "" : group);
    int64_t most = 0;
    int64_t used = 0;
    if (ReadNumber(absl::StrCat(folder, "/pids.max"), &most)) {
      ReadNumber(absl::StrCat(folder, "/pids.current"), &used);
      left = std::min(left, std::max<int64_t>(0, most - used));
    }
    if (group.size() <= 1) {
      return left;
    }
    group.resize(group.rfind('/'));
  }
}

}  // namespace

int64_t OpenFilesMax() { return LimitOf(RLIMIT_NOFILE); }

int64_t ThreadsMax() {
  const int64_t of_user = ::geteuid() == 0 ? INT64_MAX : LimitOf(RLIMIT_NPROC);
  return std::min(of_user, ThreadsOfGroups(TextOf("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

int64_t ThreadsOfGroups(absl::string_view groups, const std::string& mount) {
  int64_t left = INT64_MAX;
  for (const absl::string_view line : absl::StrSplit(groups, '\n', absl::SkipEmpty())) {
    // number:controllers:path
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && parts[1] == "pids") {
      left = std::min(left, ThreadsLeft(absl::StrCat(mount, "/pids"), parts[2]));
    } else if (parts.size() == 3 && parts[1].empty()) {
      left = std::min(left, ThreadsLeft(mount, parts[2]));
    }
  }
  return left;
}

absl::Status RaiseOpenFiles(int64_t wanted) {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const int64_t most = OpenFilesMax();
  if (most >= wanted) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the limit of open files (RLIMIT_NOFILE) is %d and this fleet needs %d; raise it with "
      "\"ulimit -n %d\" or LimitNOFILE= of systemd",
      most, wanted, wanted));
}

absl::Status CheckThreads(int64_t wanted) {
  const int64_t most = ThreadsMax();
  if (most >= wanted) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the limit of threads (RLIMIT_NPROC or the container's pids.max) is %d and %d are needed; "
      "raise it with \"ulimit -u\", TasksMax= of systemd, or docker run --pids-limit",
      most, wanted));
}

int64_t ThreadsOfProcess(int64_t computing) { return computing + kThreadsBesides; }

}  // namespace trireme::launcher

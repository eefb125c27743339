// Sweeper: ends whatever is left of a child, on this host and, through a remote agent, on others,
// without blocking the caller. A node that cannot be asked makes the sweep fail: nobody knows what
// lives there.
#ifndef TRIREME_LAUNCHER_SWEEPER_H_
#define TRIREME_LAUNCHER_SWEEPER_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace trireme::launcher {

// How a process is run on another host: the words that go before the host's shell script.
struct RemoteHost {
  std::string host;
  std::vector<std::string> agent_words;
};

struct SweepResult {
  int child = 0;
  absl::Status outcome;  // Unavailable names the hosts or processes that are left
};

// One thread.
class Sweeper {
 public:
  explicit Sweeper(std::string log_path);  // gets what the remote agents print
  ~Sweeper();

  // Kills now and until nothing is left, for at most 10 s. One that runs for the same child goes on
  // with a new limit.
  void Begin(int child, const std::string& tag_prefix, const std::vector<RemoteHost>& hosts,
             absl::Time now);

  // Whether `process` is one of its agents; told by who reaps, with the exit code.
  bool OnExited(pid_t process, int code);

  // Looks again; call every 50 ms while `is_busy`. Results come once.
  std::vector<SweepResult> Poll(absl::Time now);
  bool is_busy() const { return !jobs_.empty(); }

 private:
  struct Remote {
    std::string host;
    pid_t process = -1;  // -1: has ended
    bool is_clean = false;
  };
  struct Job {
    std::string tag_prefix;
    absl::Time deadline;
    std::vector<Remote> remotes;
  };

  const std::string log_path_;
  std::map<int, Job> jobs_;  // by child
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_SWEEPER_H_

// FaultInjection: a process that fails on purpose, where and when a test says so. Only with
// --fault-injection FOLDER; then health has the name kFaultInjectionName, GetStatus says so, and so
// does a warning in the log.
//
// A test writes FOLDER/rank-R with "ACTION", or "ACTION at POINT". Without a point the process acts
// within some milliseconds, whatever it does; with one, when it gets there. The file is renamed to
// rank-R.done first, so that each fault happens once and a test can see that it did.
//
//   actions  exit CODE (at once, as if the process had died), crash (SIGSEGV), stop (SIGSTOP),
//   block
//            (the thread that got there, for ever), fail (an internal error), abort CODE
//            (MPI_Abort)
//   points   launch, connect, load, warmup (the phases of a start); prefill, decode (before a step
//            that has prompt tokens, or none)
#ifndef TRIREME_LAUNCHER_FAULT_INJECTION_H_
#define TRIREME_LAUNCHER_FAULT_INJECTION_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"

namespace trireme::launcher {

struct Fault {
  std::string action;
  int code = 0;
  std::string point;  // empty: anywhere
};

// InvalidArgument naming the word that is none of the above.
absl::StatusOr<Fault> ParseFault(absl::string_view text);

class FaultInjection {
 public:
  // An empty folder: nothing ever happens, and nothing is watched.
  FaultInjection(const std::string& folder, int rank);
  ~FaultInjection();
  FaultInjection(const FaultInjection&) = delete;
  FaultInjection& operator=(const FaultInjection&) = delete;

  bool enabled() const { return !path_.empty(); }

  // What "abort" does; until it is set such a fault fails instead. Any thread.
  void SetAbort(std::function<void(int code)> abort);

  // Acts when a fault for this point waits: may not return. Internal for "fail". Any thread.
  absl::Status Reach(absl::string_view point);

 private:
  absl::Status Act(const Fault& fault);

  const std::string path_;
  Mutex mutex_;
  std::function<void(int code)> abort_ ABSL_GUARDED_BY(mutex_);
  Notification ends_;
  std::thread watcher_;
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FAULT_INJECTION_H_

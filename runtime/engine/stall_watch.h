// StallWatch: notices that the ranks of one process, which are threads and have no heartbeats, do
// not finish a step that they have begun. Ranks that are processes watch each other instead
// (comm/control_link.h); the rule is the same one, comm/control_monitor.h.
#ifndef TRIREME_RUNTIME_ENGINE_STALL_WATCH_H_
#define TRIREME_RUNTIME_ENGINE_STALL_WATCH_H_

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "runtime/comm/control_monitor.h"
#include "runtime/engine/worker.h"

namespace trireme::engine {

class StallWatch {
 public:
  // Looks every heartbeat period, from now until the destructor. `ranks` outlive it. `on_stall` is
  // called once at most, on the watch's thread, with DeadlineExceeded naming the rank that is
  // furthest behind, and must not end the watch.
  StallWatch(const comm::MonitorOptions& options, std::vector<const WorkerProgress*> ranks,
             std::function<void(const absl::Status&)> on_stall);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

 private:
  void Run(const comm::MonitorOptions& options, const std::vector<const WorkerProgress*>& ranks,
           const std::function<void(const absl::Status&)>& on_stall);

  Notification ends_;
  std::thread thread_;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_STALL_WATCH_H_

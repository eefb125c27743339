#include "runtime/engine/stall_watch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/comm/rank_place.h"

namespace trireme::engine {

StallWatch::StallWatch(const comm::MonitorOptions& options,
                       std::vector<const WorkerProgress*> ranks,
                       std::function<void(const absl::Status&)> on_stall)
    : thread_([this, options, ranks = std::move(ranks), on_stall = std::move(on_stall)] {
        Run(options, ranks, on_stall);
      }) {}

StallWatch::~StallWatch() {
  ends_.Notify();
  thread_.join();
}

void StallWatch::Run(const comm::MonitorOptions& options,
                     const std::vector<const WorkerProgress*>& ranks,
                     const std::function<void(const absl::Status&)>& on_stall) {
  const std::string host = comm::LocalPlace("").host;
  std::vector<comm::ControlMonitor::Member> peers;
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    peers.push_back({.rank = static_cast<int>(rank), .host = host});
  }
  comm::ControlMonitor monitor(options, {.rank = 0, .host = host}, peers, SteadyClock()->Now());
  while (!ends_.WaitForNotificationWithTimeout(options.heartbeat_period)) {
    const absl::Time now = SteadyClock()->Now();
    int64_t issued_step = 0;
    std::vector<int64_t> finished_steps;
    for (const WorkerProgress* rank : ranks) {
      // In this order: a step that ends in between counts as a new one for one look at most.
      const bool is_computing = rank->is_computing.load();
      finished_steps.push_back(static_cast<int64_t>(rank->steps_finished.load()));
      issued_step = std::max(issued_step, finished_steps.back() + (is_computing ? 1 : 0));
    }
    // First what was issued: the time that a rank idled before it is no time of a step.
    monitor.OnIssuedStep(issued_step, now);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      monitor.OnProgress(static_cast<int>(rank), {.finished_step = finished_steps[rank]}, now);
    }
    monitor.OnTick(now);
    for (const comm::ControlEvent& event : monitor.TakeEvents()) {
      if (event.kind == comm::ControlEvent::Kind::kLost) {
        on_stall(event.peer.ToStatus());
      }
    }
  }
}

}  // namespace trireme::engine

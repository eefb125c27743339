// One thread that moves new tokens from the engine's mailboxes into the calls, and wakes calls when
// their time has come. So the engine thread only marks a stream as ready, and an idle server has no
// timers.
#ifndef TRIREME_RUNTIME_SERVE_STREAM_PUMP_H_
#define TRIREME_RUNTIME_SERVE_STREAM_PUMP_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace trireme::serve {

class StreamPump {
 public:
  class Client {
   public:
    virtual ~Client() = default;

    // Does what is due and returns when it wants to be called again at the latest
    // (absl::InfiniteFuture: not before the next Wake). Called by the pump's thread, never twice at
    // once; for a client that is given to PumpHere, by those threads too, at any time.
    virtual absl::Time Pump(absl::Time now) = 0;

   private:
    friend class StreamPump;
    bool ready_ = false;  // in ready_clients_; guarded by the pump's mutex
    // The timer that counts, in ns since the epoch. Written by the pump's thread only.
    std::atomic<int64_t> due_ns_{std::numeric_limits<int64_t>::max()};
  };

  // `clock` must outlive it.
  explicit StreamPump(Clock* clock);
  ~StreamPump();
  StreamPump(const StreamPump&) = delete;
  StreamPump& operator=(const StreamPump&) = delete;

  // The client's Pump is called soon. Any thread; never blocks; several wakes before that are one.
  void Wake(std::shared_ptr<Client> client);

  // Calls the client's Pump on this thread, which holds no lock that Pump could want: one change of
  // threads less than Wake.
  void PumpHere(const std::shared_ptr<Client>& client);

 private:
  void Run();
  absl::Duration UntilNextTimer(absl::Time now) const;
  void RunClient(const std::shared_ptr<Client>& client);

  Clock* const clock_;
  // Only the pump's thread; weak, so that a timer keeps no ended call alive.
  std::multimap<absl::Time, std::weak_ptr<Client>> timers_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::shared_ptr<Client>> ready_clients_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_STREAM_PUMP_H_

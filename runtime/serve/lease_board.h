// Which attempts run for which balancer, and when each balancer was heard last. A balancer that is
// silent for longer than the patience loses its attempts: it is dead, or behind a cut link and has
// sent them elsewhere.
#ifndef TRIREME_RUNTIME_SERVE_LEASE_BOARD_H_
#define TRIREME_RUNTIME_SERVE_LEASE_BOARD_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/live_calls.h"
#include "runtime/serve/stream_pump.h"

namespace trireme::serve {

class LeaseBoard final : public StreamPump::Client {
 public:
  // `clock` and `live_calls`, where the attempts are found, must outlive it.
  LeaseBoard(absl::Duration patience, Clock* clock, LiveCalls* live_calls);

  // An attempt under `lease` begins or has ended; its beginning is a sign of life too. Wake the
  // pump for the board after Hold. Any thread, as Ping.
  void Hold(const std::string& lease, const std::string& live_id);
  void Release(const std::string& lease, const std::string& live_id);
  void Ping(const std::string& lease);

  // Ends (CANCELLED) what silent balancers left.
  absl::Time Pump(absl::Time now) override;

 private:
  struct Lease {
    absl::Time heard;
    absl::flat_hash_set<std::string> live_ids;  // never empty
  };

  const absl::Duration patience_;
  Clock& clock_;
  LiveCalls& live_calls_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Lease> leases_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_LEASE_BOARD_H_

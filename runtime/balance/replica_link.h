// The connection from a balancer to one replica, and everything that travels on it: the load
// reports, which are also the heartbeat, the lease pings, and the attempts at requests. It decides
// nothing: what happened is told to the listener (balancer_core decides).
//
// A replica that is gone closes its connections, which ends the watch and every attempt at once. A
// replica that is stopped or behind a cut link is silent: after `silence_limit` without a report
// the watch and all attempts end too, and new connections are made.
//
// Thread rule: any thread may call any method. The listener's methods are called on gRPC's threads
// or inside Tick, for one watch or attempt one at a time; they must not block.
#ifndef TRIREME_RUNTIME_BALANCE_REPLICA_LINK_H_
#define TRIREME_RUNTIME_BALANCE_REPLICA_LINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"

// Named only, so that no protobuf header is needed here.
namespace trireme::v1 {
class ExecuteEvent;
class ExecuteRequest;
class LoadReport;
}  // namespace trireme::v1

namespace trireme::balance {

struct ReplicaLinkOptions {
  std::string name;      // the operator's, for logs and errors
  std::string endpoint;  // HOST:PORT
  std::string lease;     // this balancer's, unique in the fleet
  int connections = 2;   // that attempts are spread over; each carries 1024 streams
  absl::Duration silence_limit = absl::Seconds(3);
  absl::Duration reconnect_pause =
      absl::Milliseconds(200);  // from one end of the watch to the next
  absl::Duration lease_period = absl::Seconds(1);
};

// How an attempt ended.
struct AttemptEnd {
  absl::Status status;         // OK, what the replica answered, or UNAVAILABLE REPLICA_LOST
  absl::Duration retry_delay;  // as the replica advised; zero without
};

class AttemptListener {
 public:
  virtual ~AttemptListener() = default;
  virtual void OnEvent(v1::ExecuteEvent& event) = 0;
  // Once, last.
  virtual void OnEnd(const AttemptEnd& end) = 0;
};

// One Execute. Dropping it does not end it.
class SentAttempt {
 public:
  virtual ~SentAttempt() = default;
  // Its OnEnd follows soon, with CANCELLED. Idempotent.
  virtual void Cancel() = 0;
};

class ReplicaLinkListener {
 public:
  virtual ~ReplicaLinkListener() = default;
  virtual void OnLoadReport(const v1::LoadReport& report) = 0;
  // The watch ended or fell silent; a new one is tried until it stands.
  virtual void OnWatchLost() = 0;
};

class ReplicaLink {
 public:
  // Connects in the background from the first Tick on. `listener` and `clock` must outlive it.
  static std::unique_ptr<ReplicaLink> Create(ReplicaLinkOptions options,
                                             ReplicaLinkListener* listener, Clock* clock);
  // Ends the watch and all attempts, and returns when their listeners have heard it.
  virtual ~ReplicaLink() = default;

  // `deadline` is on the clock; infinite: none.
  virtual std::shared_ptr<SentAttempt> Execute(const v1::ExecuteRequest& request, absl::Time deadline,
                                           std::shared_ptr<AttemptListener> listener) = 0;

  // What is due: connecting again, lease pings, noticing silence. Returns when it wants the next
  // Tick at the latest.
  virtual absl::Time Tick(absl::Time now) = 0;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_REPLICA_LINK_H_

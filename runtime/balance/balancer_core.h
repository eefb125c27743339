// The balancer's mind: which replica gets a request, when it is tried again, which tokens reach the
// client. Pure: events and the time come in, actions go out; no clocks, sockets or threads. The
// same object runs behind gRPC and in tests/simulation.
//
//  * Every request ends in exactly one FinishRequest or FailRequest.
//  * One attempt of a request is current at a time. Answers of an older one are dropped (fencing),
//    and tokens that repeat, leave a gap or come after the end make the attempt fail.
//  * Tokens are logged by position. A request whose replica is lost goes on elsewhere after its
//    emitted tokens, on an equal fingerprint only; with nothing delivered it may begin anew
//    anywhere.
//
// Thread rule: one thread at a time (the caller's lock). Times are those of one monotonic clock.
// Each event appends its actions to *actions and needs some microseconds, whatever is live.
#ifndef TRIREME_RUNTIME_BALANCE_BALANCER_CORE_H_
#define TRIREME_RUNTIME_BALANCE_BALANCER_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/balance/action.h"
#include "runtime/balance/balancer_options.h"
#include "runtime/balance/load_report.h"
#include "runtime/balance/request_facts.h"

namespace trireme::balance {

// One replica as a status page shows it.
struct ReplicaView {
  ReplicaKey key = 0;
  std::string name;
  std::string state;    // "unknown", "starting", "fresh", "stale", "suspect", "draining", "lost"
  std::string breaker;  // "closed", "open", "half-open"
  uint64_t epoch = 0;
  std::string fingerprint;
  absl::Duration report_age;     // infinite: none yet
  double weight = 0;             // slow start and its own wish together
  int64_t attempts = 0;          // of this balancer, now
  int64_t attempts_waiting = 0;  // of those, not begun by the replica
  int64_t tokens_in_flight = 0;  // of this balancer
  LoadReport report;             // the last accepted one
};

// Where one live request stands.
struct RequestView {
  bool queued = false;
  uint32_t attempt = 0;  // the current or last one; 0: none yet
  ReplicaKey replica = 0;
  int64_t emitted_tokens = 0;
};

struct BalancerCounts {
  int64_t requests = 0;  // accepted by OnRequest
  int64_t finished = 0;
  int64_t failed = 0;
  int64_t attempts = 0;
  int64_t retries_charged = 0;   // to the budget
  int64_t moves_after_loss = 0;  // not charged: the replica was lost under a running attempt
  int64_t stale_answers = 0;     // dropped by fencing
  int64_t protocol_faults = 0;
  int64_t reports_refused = 0;
  int64_t shed = 0;  // for want of room in the queue
  int64_t quarantined = 0;
};

class BalancerCore {
 public:
  explicit BalancerCore(const BalancerOptions& options);
  ~BalancerCore();
  BalancerCore(const BalancerCore&) = delete;
  BalancerCore& operator=(const BalancerCore&) = delete;

  // ---- Replicas ------------------------------------------------------------------------------

  // A replica that may be used once it has reported. `name` is what balancers agree on (not an
  // address that changes); it must not be in use.
  ReplicaKey OnReplicaAdded(absl::string_view name, absl::Time now, Actions* actions);
  // It is gone from the configuration: nothing new, its attempts are cancelled and move away.
  void OnReplicaRemoved(ReplicaKey replica, absl::Time now, Actions* actions);
  // InvalidArgument when the report is refused (load_report.h); it then has no effect. A report of
  // a newer epoch means that all attempts of older ones are lost.
  absl::Status OnLoadReport(ReplicaKey replica, const LoadReport& report, absl::Time now,
                            Actions* actions);
  // The load stream broke. Nothing new is sent before the next report; running attempts stay as
  // long as they give signs of life.
  void OnWatchLost(ReplicaKey replica, absl::Time now, Actions* actions);
  // Moves every attempt of the replica elsewhere, as for a drain that does not wait.
  void MoveAway(ReplicaKey replica, absl::Time now, Actions* actions);

  // ---- Requests ------------------------------------------------------------------------------

  // The key of the new request, with its first actions (StartAttempt or QueueRequest); or an error
  // and no action at all: Unavailable (NO_REPLICA, STARTING, DRAINING), ResourceExhausted
  // (OVERLOADED, RATE, TOKENS, CONCURRENCY), DeadlineExceeded (IN_QUEUE), Internal
  // (POISON_SUSPECT). A request of lower priority may be failed to make room.
  absl::StatusOr<RequestKey> OnRequest(const RequestFacts& facts, absl::Time now, Actions* actions);
  // The client went away or cancelled: FailRequest with CANCELLED (BY_CLIENT). Unknown keys are
  // ignored, here and below: the request has ended.
  void OnCancel(RequestKey request, absl::Time now, Actions* actions);

  // ---- Answers of attempts -------------------------------------------------------------------

  // The replica took the attempt out of its queue. `fingerprint` is what it computes with.
  void OnAccepted(RequestKey request, uint32_t attempt, absl::string_view fingerprint,
                  int64_t cached_tokens, absl::Time now, Actions* actions);
  // Tokens from `first_position`, counted over all attempts. With DeliverTokens all of them are
  // new; without it none is to be handed on.
  void OnTokens(RequestKey request, uint32_t attempt, int64_t first_position,
                absl::Span<const int32_t> token_ids, absl::Time now, Actions* actions);
  // The attempt ended well. `generated_tokens` of this attempt by the replica's own count, which
  // must be what arrived; negative: not told.
  void OnFinished(RequestKey request, uint32_t attempt, int64_t generated_tokens, absl::Time now,
                  Actions* actions);
  // The attempt ended with `status` (failure.h reads it). A connection that broke without a word is
  // Unavailable (REPLICA_LOST); answers out of sequence are Internal (BUG). `retry_after` is what
  // the replica asked for, else zero.
  void OnAttemptFailed(RequestKey request, uint32_t attempt, const absl::Status& status,
                       absl::Duration retry_after, absl::Time now, Actions* actions);

  // ---- Time ----------------------------------------------------------------------------------

  // Deadlines, silent replicas, stalled attempts, the queue. To be called at NextTick(); earlier
  // and later calls do no harm.
  void OnTick(absl::Time now, Actions* actions);
  // When the next OnTick has work, as of the last event. InfiniteFuture when nothing is live.
  absl::Time NextTick() const;

  // ---- Settings ------------------------------------------------------------------------------

  // Takes over what may change while requests run: pick, health.stale_after, the queue's length,
  // and retries but their window. The rest of `options` is not looked at.
  void Reconfigure(const BalancerOptions& options);

  // ---- Views ---------------------------------------------------------------------------------

  std::vector<ReplicaView> Replicas(absl::Time now) const;
  // Nothing when the request has ended.
  std::optional<RequestView> Find(RequestKey request) const;
  int64_t live_requests() const;
  int64_t queued_requests() const;
  BalancerCounts counts() const;

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_BALANCER_CORE_H_

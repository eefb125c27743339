// The inside of BalancerCore: live requests, replicas, queue, budget, timers. Events come in
// through balancer_core.cc; attempt_control.cc starts, ends and moves attempts.
#ifndef TRIREME_RUNTIME_BALANCE_BALANCER_STATE_H_
#define TRIREME_RUNTIME_BALANCE_BALANCER_STATE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/balance/admission.h"
#include "runtime/balance/balancer_core.h"
#include "runtime/balance/failure.h"
#include "runtime/balance/forwarded_request.h"
#include "runtime/balance/quarantine.h"
#include "runtime/balance/replica_set.h"
#include "runtime/balance/retry_budget.h"
#include "runtime/balance/seeded_random.h"

namespace trireme::balance {

// How an attempt failed.
struct AttemptFailure {
  FailureKind kind = FailureKind::kFault;
  absl::Status status;
  absl::Duration retry_after;
  // The core itself gives the attempt up, so the caller must cancel it.
  bool cancel = false;
  // Moves without a charge to the retry budget: a loss of the whole replica, or an operator's wish.
  bool free = false;
};

class BalancerCore::State {
 public:
  explicit State(const BalancerOptions& options_in);

  // Queue entries are looked at again after so long at the latest.
  static constexpr absl::Duration kQueueTick = absl::Milliseconds(50);

  // ---- attempt_control.cc ----

  // Sends whatever can be sent now: requests under way first, then the queue in its order.
  void Dispatch(absl::Time now, Actions* actions);
  // True when an attempt was started.
  bool TryStart(ForwardedRequest& request, absl::Time now, Actions* actions);
  // The current attempt failed; the request moves, or ends.
  void FailAttempt(ForwardedRequest& request, const AttemptFailure& failure, absl::Time now,
                   Actions* actions);
  // Fails every attempt of the replica whose epoch is before `epoch`.
  void FailAttemptsOf(Replica& replica, uint64_t epoch, const AttemptFailure& failure,
                      absl::Time now, Actions* actions);
  void Finish(ForwardedRequest& request, absl::Time now, Actions* actions);
  // Ends the request with an error; a current attempt is cancelled.
  void Fail(ForwardedRequest& request, const absl::Status& status, absl::Time now,
            Actions* actions);
  // Sets the request's timer to when something is due.
  void Arm(ForwardedRequest& request, absl::Time now);
  void OnTimer(ForwardedRequest& request, absl::Time now, Actions* actions);
  // Unavailable: why no replica serves.
  absl::Status NobodyServes(absl::Time now);

  // The attempt no longer waits at its replica.
  static void UnbookWaiting(const Attempt& attempt, Replica& replica);

  // ---- balancer_core.cc ----

  ForwardedRequest* Find(RequestKey key);
  // The request whose current attempt this is; null when the answer is out of date.
  ForwardedRequest* Current(RequestKey key, uint32_t attempt);
  // OK when one more may wait, in the queue or (`under_way`) among those that move; somebody may be
  // shed for it. Else ResourceExhausted (OVERLOADED).
  absl::Status MakeRoom(const Admission::Tenant* tenant, Priority priority, bool under_way,
                        absl::Time now, Actions* actions);
  // Between 0.5 and 1.5 of `duration`.
  absl::Duration Jitter(absl::Duration duration);

  BalancerOptions options;  // changed in place by Reconfigure: others point into it
  SeededRandom random;
  ReplicaSet replicas;
  Admission admission;
  RetryBudget budget;
  Quarantine quarantine;
  absl::flat_hash_map<RequestKey, std::unique_ptr<ForwardedRequest>> requests;
  std::set<std::pair<absl::Time, RequestKey>> timers;
  // Requests in phase kMoving, the most urgent and oldest first.
  std::set<std::pair<Priority, RequestKey>> moving;
  RequestKey next_key = 1;
  absl::Time last_dispatch = absl::InfinitePast();
  double mean_output_tokens = 128;  // of finished requests, a running mean
  BalancerCounts counts;

 private:
  void Start(ForwardedRequest& request, const Candidate& candidate, const Picked& picked,
             absl::Time now, Actions* actions);
  void CountStartOfMove(ForwardedRequest& request, ReplicaKey to, absl::Time now);
  // Takes the attempt out of its replica's books.
  void Unbook(ForwardedRequest& request);
  void BookVerdict(ForwardedRequest& request, Replica& replica, const AttemptFailure& failure,
                   absl::Time now);
  // Not OK when the request must not be tried again.
  absl::Status MayMove(ForwardedRequest& request, const AttemptFailure& failure, absl::Time now);
  // True when this failure is the death of one more replica under the request.
  bool CountDeath(ForwardedRequest& request, const AttemptFailure& failure);
  absl::Status CountMove(ForwardedRequest& request, const AttemptFailure& failure);
  absl::Status MayWaitForBudget(const ForwardedRequest& request, const AttemptFailure& failure,
                                absl::Time now);
  absl::Status CannotContinue(const ForwardedRequest& request, absl::Time now);
  void Erase(ForwardedRequest& request, absl::Time now);
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_BALANCER_STATE_H_

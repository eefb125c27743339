// Keeps work away from a replica that fails again and again. Closed: all is well. Open, after
// failures in a row: nothing is sent for a time that doubles. Half-open: one probe at a time, and
// it closes after some successes in a row. A probe that is lost or given up opens or frees the
// place again, so half-open is never stuck.
#ifndef TRIREME_RUNTIME_BALANCE_BREAKER_H_
#define TRIREME_RUNTIME_BALANCE_BREAKER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/balance/balancer_options.h"
#include "runtime/balance/seeded_random.h"

namespace trireme::balance {

// Thread rule: one thread.
class Breaker {
 public:
  // `options` must outlive it.
  explicit Breaker(const HealthOptions* options) : options_(options) {}

  // Whether an attempt may be sent now.
  bool Allows(absl::Time now) const;
  // An attempt is sent (Allows). True: it is a probe, which its outcome must say.
  bool Start(absl::Time now);

  void OnSuccess(bool probe);
  // `may_open`: the share of ejected replicas leaves room for this one.
  void OnFailure(bool probe, bool may_open, absl::Time now, SeededRandom* random);
  // The attempt ended without a verdict: cancelled, or the request's own fault.
  void OnNoVerdict(bool probe);
  // The replica began anew.
  void Reset();

  // Ejected: open or half-open.
  bool ejected() const { return state_ != State::kClosed; }
  // "closed", "open" or "half-open".
  absl::string_view state_name() const;
  // When Allows may become true by itself; InfiniteFuture when not by time.
  absl::Time opens_until() const;

 private:
  enum class State : uint8_t { kClosed, kOpen, kHalfOpen };

  void Open(absl::Time now, SeededRandom* random);

  const HealthOptions* options_;
  State state_ = State::kClosed;
  int failures_ = 0;   // in a row
  int successes_ = 0;  // of probes, in a row
  int openings_ = 0;   // since it was last closed
  bool probing_ = false;
  absl::Time open_until_ = absl::InfinitePast();
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_BREAKER_H_

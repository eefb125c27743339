// A bucket that fills at a rate: how much one tenant may use. It may go below zero by settling, and
// tells how long to wait until a cost fits, so that whoever waits so long is let in.
#ifndef TRIREME_RUNTIME_BALANCE_TENANT_LIMITS_H_
#define TRIREME_RUNTIME_BALANCE_TENANT_LIMITS_H_

#include "absl/time/time.h"

namespace trireme::balance {

// Thread rule: one thread. Times do not go back.
class TokenBucket {
 public:
  // Holds what comes in `burst` at the rate, and at least 1. An infinite rate never limits.
  TokenBucket(double per_second, absl::Duration burst);

  // Zero when `cost` may be taken now. What costs more than the bucket holds needs a full bucket.
  absl::Duration WaitFor(double cost, absl::Time now);
  // Takes it, or gives it back when negative.
  void Take(double cost, absl::Time now);

 private:
  void Fill(absl::Time now);

  double per_second_;
  double capacity_;
  double level_;
  absl::Time filled_ = absl::InfinitePast();
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_TENANT_LIMITS_H_

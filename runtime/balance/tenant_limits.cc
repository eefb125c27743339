#include "runtime/balance/tenant_limits.h"

#include <algorithm>
#include <cmath>

namespace trireme::balance {

TokenBucket::TokenBucket(double per_second, absl::Duration burst)
    : per_second_(per_second),
      capacity_(std::max(1.0, per_second * absl::ToDoubleSeconds(burst))),
      level_(capacity_) {}

absl::Duration TokenBucket::WaitFor(double cost, absl::Time now) {
  if (std::isinf(per_second_)) {
    return absl::ZeroDuration();
  }
  Fill(now);
  const double missing = std::min(cost, capacity_) - level_;
  if (missing <= 0) {
    return absl::ZeroDuration();
  }
  // A little more than needed: rounding must not make the one who waited wait again.
  return absl::Seconds(missing / per_second_) + absl::Microseconds(1);
}

void TokenBucket::Take(double cost, absl::Time now) {
  if (std::isinf(per_second_)) {
    return;
  }
  Fill(now);
  level_ = std::min(level_ - cost, capacity_);
}

void TokenBucket::Fill(absl::Time now) {
  if (filled_ != absl::InfinitePast() && now > filled_) {
    level_ = std::min(level_ + per_second_ * absl::ToDoubleSeconds(now - filled_), capacity_);
  }
  filled_ = std::max(filled_, now);
}

}  // namespace trireme::balance

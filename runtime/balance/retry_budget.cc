#include "runtime/balance/retry_budget.h"

#include <algorithm>
#include <cstddef>

namespace trireme::balance {

void RetryBudget::MoveTo(absl::Time now) {
  const absl::Duration slice = options_->window / kSlices;
  const int64_t number = (now - absl::UnixEpoch()) / slice;
  constexpr auto kRing = static_cast<int64_t>(kSlices + 1);
  if (number - current_ >= kRing) {
    slices_.fill({});
    requests_ = 0;
    retries_ = 0;
    current_ = number;
  }
  while (current_ < number) {
    ++current_;
    Slice& oldest = slices_[static_cast<size_t>(current_ % kRing)];
    requests_ -= oldest.requests;
    retries_ -= oldest.retries;
    oldest = {};
  }
}

void RetryBudget::OnRequest(absl::Time now) {
  MoveTo(now);
  ++slices_[static_cast<size_t>(current_ % (kSlices + 1))].requests;
  ++requests_;
}

bool RetryBudget::HasRoom(absl::Time now) {
  MoveTo(now);
  // The oldest slice may lie outside the window in part: its retries count, its requests do not.
  const Slice& oldest = slices_[static_cast<size_t>((current_ + 1) % (kSlices + 1))];
  const auto share =
      static_cast<int64_t>(options_->share * static_cast<double>(requests_ - oldest.requests));
  return retries_ < std::max(options_->retries_min, share);
}

bool RetryBudget::TakeRetry(absl::Time now) {
  if (!HasRoom(now)) {
    return false;
  }
  ++slices_[static_cast<size_t>(current_ % (kSlices + 1))].retries;
  ++retries_;
  return true;
}

}  // namespace trireme::balance

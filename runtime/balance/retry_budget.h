// Keeps retries from multiplying the load when replicas fail: in any window up to now, retries are
// at most a share of the requests that came, or a small number (Google: Site reliability
// engineering, chapter 21). Time is counted in slices of a hundredth of the window; a request
// counts for a little less than the window and a retry for a little more.
#ifndef TRIREME_RUNTIME_BALANCE_RETRY_BUDGET_H_
#define TRIREME_RUNTIME_BALANCE_RETRY_BUDGET_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "runtime/balance/balancer_options.h"

namespace trireme::balance {

// Thread rule: one thread. Times do not go back.
class RetryBudget {
 public:
  // `options` must outlive it.
  explicit RetryBudget(const RetryOptions* options) : options_(options) {}

  void OnRequest(absl::Time now);
  // True and counted when a retry fits.
  bool TakeRetry(absl::Time now);
  bool HasRoom(absl::Time now);

  int64_t requests_in_window() const { return requests_; }
  int64_t retries_in_window() const { return retries_; }

 private:
  static constexpr int64_t kSlices = 100;
  struct Slice {
    int64_t requests = 0;
    int64_t retries = 0;
  };

  void MoveTo(absl::Time now);

  const RetryOptions* options_;
  std::array<Slice, kSlices + 1> slices_;  // a ring; the current one is the window's first part
  int64_t current_ = 0;                    // number of the current slice since the epoch
  int64_t requests_ = 0;
  int64_t retries_ = 0;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_RETRY_BUDGET_H_

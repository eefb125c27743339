#include "runtime/balance/retry_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "runtime/balance/seeded_random.h"

namespace trireme::balance {
namespace {

TEST(RetryBudgetTest, AFewRetriesAreAlwaysAllowed) {
  const RetryOptions options;
  RetryBudget budget(&options);
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  EXPECT_TRUE(budget.TakeRetry(now));
  EXPECT_TRUE(budget.TakeRetry(now));
  EXPECT_TRUE(budget.TakeRetry(now));
  EXPECT_FALSE(budget.TakeRetry(now));
  EXPECT_FALSE(budget.TakeRetry(now + absl::Milliseconds(9900)));
  EXPECT_TRUE(budget.TakeRetry(now + absl::Milliseconds(10200)));
}

// B-7 against two plain lists of times.
TEST(RetryBudgetTest, RetriesStayUnderTheShareInEveryWindow) {
  const RetryOptions options;
  RetryBudget budget(&options);
  SeededRandom random(5);
  std::deque<absl::Time> requests;
  std::deque<absl::Time> retries;
  absl::Time now = absl::UnixEpoch();
  int64_t refused = 0;
  for (int event = 0; event < 20000; ++event) {
    now += absl::Milliseconds(static_cast<int64_t>(random.Below(event < 10000 ? 20 : 200)));
    budget.OnRequest(now);
    requests.push_back(now);
    while (requests.front() <= now - options.window) requests.pop_front();
    while (!retries.empty() && retries.front() <= now - options.window) retries.pop_front();
    if (random.Chance(0.3)) {
      if (budget.TakeRetry(now)) {
        retries.push_back(now);
        EXPECT_LE(static_cast<double>(retries.size()),
                  std::max(3.0, 0.1 * static_cast<double>(requests.size())));
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace trireme::balance

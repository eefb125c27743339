#include "runtime/serve/lease_board.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/base/error_reason.h"
#include "tests/support/manual_clock.h"

namespace trireme::serve {
namespace {

class EndedCall final : public LiveCall {
 public:
  void End(const absl::Status& status) override { statuses.push_back(status); }
  std::vector<absl::Status> statuses;
};

class LeaseBoardTest : public ::testing::Test {
 protected:
  std::shared_ptr<EndedCall> Hold(const std::string& lease, const std::string& id) {
    auto call = std::make_shared<EndedCall>();
    EXPECT_TRUE(live_calls_.Add(id, call).ok());
    board_.Hold(lease, id);
    return call;
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    next_ = board_.Pump(clock_.Now());
  }

  testing::ManualClock clock_;
  LiveCalls live_calls_;
  LeaseBoard board_{absl::Seconds(5), &clock_, &live_calls_};
  absl::Time next_;
};

TEST_F(LeaseBoardTest, EndsTheAttemptsOfABalancerThatIsSilentForFiveSeconds) {
  const auto first = Hold("b1", "x@1");
  const auto second = Hold("b1", "y@1");
  Pass(absl::Milliseconds(4999));
  EXPECT_TRUE(first->statuses.empty());
  EXPECT_EQ(next_, clock_.Now() + absl::Milliseconds(1));
  Pass(absl::Milliseconds(1));
  ASSERT_EQ(first->statuses.size(), 1u);
  EXPECT_EQ(first->statuses[0].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(second->statuses.size(), 1u);
  EXPECT_EQ(next_, absl::InfiniteFuture());
}

TEST_F(LeaseBoardTest, APingKeepsThemOfThatBalancerOnly) {
  const auto kept = Hold("b1", "x@1");
  const auto lost = Hold("b2", "y@1");
  Pass(absl::Seconds(4));
  board_.Ping("b1");
  Pass(absl::Seconds(2));
  EXPECT_TRUE(kept->statuses.empty());
  EXPECT_EQ(lost->statuses.size(), 1u);
}

TEST_F(LeaseBoardTest, ANewAttemptIsASignOfLifeToo) {
  const auto kept = Hold("b1", "x@1");
  Pass(absl::Seconds(4));
  Hold("b1", "z@1");
  Pass(absl::Seconds(4));
  EXPECT_TRUE(kept->statuses.empty());
}

TEST_F(LeaseBoardTest, AReleasedAttemptIsLeftAlone) {
  const auto call = Hold("b1", "x@1");
  board_.Release("b1", "x@1");
  Pass(absl::Seconds(9));
  EXPECT_TRUE(call->statuses.empty());
  EXPECT_EQ(next_, absl::InfiniteFuture());
}

TEST_F(LeaseBoardTest, PingsOfUnknownBalancersLeaveNothingBehind) {
  board_.Ping("b9");
  Pass(absl::Seconds(1));
  EXPECT_EQ(next_, absl::InfiniteFuture());
}

}  // namespace
}  // namespace trireme::serve

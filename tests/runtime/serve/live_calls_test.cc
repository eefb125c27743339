#include "runtime/serve/live_calls.h"

#include <gtest/gtest.h>

#include "runtime/base/error_reason.h"

namespace trireme::serve {
namespace {

class RecordingCall final : public LiveCall {
 public:
  void End(const absl::Status& status) override { status_ = status; }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

TEST(LiveCalls, RefusesAnIdThatIsInUse) {
  LiveCalls calls;
  auto call = std::make_shared<RecordingCall>();
  ASSERT_TRUE(calls.Add("a", call).ok());
  const absl::Status status = calls.Add("a", call);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(status), kReasonRequestId);
  calls.Remove("a");
  EXPECT_TRUE(calls.Add("a", call).ok());
}

TEST(LiveCalls, EndsTheNamedCallOnly) {
  LiveCalls calls;
  auto first = std::make_shared<RecordingCall>();
  auto second = std::make_shared<RecordingCall>();
  ASSERT_TRUE(calls.Add("a", first).ok());
  ASSERT_TRUE(calls.Add("b", second).ok());
  EXPECT_TRUE(calls.EndOne("b", absl::CancelledError("x")));
  EXPECT_FALSE(calls.EndOne("c", absl::CancelledError("x")));
  EXPECT_TRUE(first->status().ok());
  EXPECT_EQ(second->status().code(), absl::StatusCode::kCancelled);
}

TEST(LiveCalls, EndsAllAndThoseThatComeLater) {
  LiveCalls calls;
  auto call = std::make_shared<RecordingCall>();
  ASSERT_TRUE(calls.Add("a", call).ok());
  calls.EndAll(absl::UnavailableError("lost"));
  EXPECT_EQ(call->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls.Add("b", call).code(), absl::StatusCode::kUnavailable);
}

TEST(LiveCalls, WaitsUntilTheLastOneHasLeft) {
  LiveCalls calls;
  auto call = std::make_shared<RecordingCall>();
  EXPECT_TRUE(calls.WaitUntilNone(absl::ZeroDuration()));
  ASSERT_TRUE(calls.Add("a", call).ok());
  EXPECT_EQ(calls.count(), 1);
  EXPECT_FALSE(calls.WaitUntilNone(absl::Milliseconds(1)));
  calls.Remove("a");
  EXPECT_TRUE(calls.WaitUntilNone(absl::Seconds(10)));
}

}  // namespace
}  // namespace trireme::serve

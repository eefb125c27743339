#include "runtime/base/error_reason.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace trireme {
namespace {

TEST(ErrorReasonTest, KeepsCodeMessageAndReason) {
  const absl::Status status =
      WithReason(absl::UnavailableError("rank 2 of host n1 is gone"), kReasonRankLost);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "rank 2 of host n1 is gone");
  EXPECT_EQ(ReasonOf(status), "RANK_LOST");
  EXPECT_EQ(ReasonOf(absl::UnavailableError("plain")), "");
  EXPECT_EQ(ReasonOf(absl::OkStatus()), "");
}

TEST(ErrorReasonTest, CarriesFieldsWithAnyBytes) {
  absl::Status status = absl::InvalidArgumentError("bad");
  EXPECT_TRUE(FieldViolationsOf(status).empty());
  status = WithField(status, "prompt.token_ids[3]", "-1: is outside the vocabulary");
  status = WithField(status, "", std::string("a\0b:9", 5));
  const auto violations = FieldViolationsOf(status);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].field, "prompt.token_ids[3]");
  EXPECT_EQ(violations[0].description, "-1: is outside the vocabulary");
  EXPECT_EQ(violations[1].field, "");
  EXPECT_EQ(violations[1].description, std::string("a\0b:9", 5));
}

TEST(ErrorReasonTest, CarriesTheAdviceWhenToRetry) {
  const absl::Status status = absl::UnavailableError("x");
  EXPECT_EQ(RetryDelayOf(status), absl::ZeroDuration());
  EXPECT_EQ(RetryDelayOf(WithRetryDelay(status, absl::Milliseconds(1500))),
            absl::Milliseconds(1500));
}

TEST(ErrorReasonTest, ReasonsAreDistinct) {
  const auto reasons = AllErrorReasons();
  EXPECT_EQ(std::set<std::string>(reasons.begin(), reasons.end()).size(), reasons.size());
}

TEST(ErrorReasonDeathTest, RefusesAReasonThatIsNotOfTheList) {
  EXPECT_DEATH(WithReason(absl::UnavailableError("x"), "MADE_UP"), "check failed");
}

}  // namespace
}  // namespace trireme

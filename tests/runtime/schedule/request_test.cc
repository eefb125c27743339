#include "runtime/schedule/request.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_reason.h"

namespace trireme::schedule {
namespace {

constexpr RequestLimits kLimits = {.vocabulary = 100, .context = 64, .blocks = 4};

Request MakeRequest(size_t prompt_tokens, int64_t max_tokens) {
  Request request;
  request.id = "r";
  request.prompt.assign(prompt_tokens, 7);
  request.stopping.max_tokens = max_tokens;
  return request;
}

absl::string_view ReasonFor(const Request& request, const RequestLimits& limits = kLimits) {
  const absl::Status status = ValidateRequest(request, limits);
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(FieldViolationsOf(status).empty());
  }
  return ReasonOf(status);
}

TEST(RequestTest, TakesPromptsThatLeaveRoomForOneToken) {
  EXPECT_EQ(ReasonFor(MakeRequest(1, 1)), "");
  EXPECT_EQ(ReasonFor(MakeRequest(63, 1)), "");
  EXPECT_EQ(ReasonFor(MakeRequest(63, std::numeric_limits<int64_t>::max())), "");
  EXPECT_EQ(ReasonFor(MakeRequest(64, 1)), kReasonPromptTooLong);
  EXPECT_EQ(ReasonFor(MakeRequest(65, 1)), kReasonPromptTooLong);
  EXPECT_EQ(ReasonFor(MakeRequest(0, 1)), kReasonBadParameter);
  EXPECT_THAT(std::string(ValidateRequest(MakeRequest(65, 1), kLimits).message()),
              ::testing::AllOf(::testing::HasSubstr("65"), ::testing::HasSubstr("64")));
}

TEST(RequestTest, RefusesTokenIdsOutsideTheVocabularyByIndex) {
  for (const int32_t bad : {-1, 100, 101, std::numeric_limits<int32_t>::max()}) {
    Request request = MakeRequest(5, 4);
    request.prompt[3] = bad;
    EXPECT_EQ(ReasonFor(request), kReasonBadTokenId);
    EXPECT_EQ(FieldViolationsOf(ValidateRequest(request, kLimits))[0].field, "prompt[3]");
    request = MakeRequest(5, 4);
    request.emitted = {1, bad};
    EXPECT_EQ(FieldViolationsOf(ValidateRequest(request, kLimits))[0].field, "emitted[1]");
  }
}

TEST(RequestTest, RefusesWhatCanNeverFitTheCacheWithBothNumbers) {
  const RequestLimits small = {.vocabulary = 100, .context = 64, .blocks = 2};
  // 33 tokens occupy 32 positions: the last one is not computed.
  EXPECT_EQ(ReasonFor(MakeRequest(20, 13), small), "");
  EXPECT_EQ(ReasonFor(MakeRequest(20, 14), small), kReasonPromptTooLong);
  EXPECT_THAT(std::string(ValidateRequest(MakeRequest(20, 14), small).message()),
              ::testing::AllOf(::testing::HasSubstr("3 KV blocks"), ::testing::HasSubstr("has 2")));
}

TEST(RequestTest, CountsEmittedTokensAgainstMaxTokensAndContext) {
  Request request = MakeRequest(10, 5);
  request.emitted.assign(5, 1);
  EXPECT_EQ(ReasonFor(request), "");
  request.emitted.assign(6, 1);
  EXPECT_EQ(ReasonFor(request), kReasonBadParameter);
  request = MakeRequest(60, 100);
  request.emitted.assign(4, 1);
  EXPECT_EQ(ReasonFor(request), "");
  request.emitted.assign(5, 1);
  EXPECT_EQ(ReasonFor(request), kReasonPromptTooLong);
}

TEST(RequestTest, RefusesBadOptions) {
  Request request = MakeRequest(3, 0);
  EXPECT_EQ(ReasonFor(request), kReasonBadParameter);
  request = MakeRequest(3, 1);
  request.sampling.temperature = 9;
  EXPECT_EQ(ReasonFor(request), kReasonBadParameter);
}

TEST(RequestTest, CountsTheBlocksThatMayBeNeeded) {
  EXPECT_EQ(BlocksAtMost(MakeRequest(16, 1), 64), 1);
  EXPECT_EQ(BlocksAtMost(MakeRequest(16, 2), 64), 2);
  EXPECT_EQ(BlocksAtMost(MakeRequest(16, std::numeric_limits<int64_t>::max()), 64), 4);
}

}  // namespace
}  // namespace trireme::schedule

#include "runtime/sample/stop_condition.h"

#include <string>

#include "gtest/gtest.h"
#include "runtime/base/error_reason.h"

namespace trireme::sample {
namespace {

constexpr int32_t kEosId = 2;

StopDecision Feed(StopCondition& condition, int32_t token_id, const std::string& text,
                  std::string* shown) {
  return condition.Append(token_id, token_id == kEosId, text, shown);
}

TEST(StopConditionTest, EndsAtTheEndOfGenerationWithoutEmittingIt) {
  StopCondition condition({.max_tokens = 10}, 3, 100);
  std::string shown;
  EXPECT_FALSE(Feed(condition, 7, "a", &shown).stop);
  const StopDecision decision = Feed(condition, kEosId, "", &shown);
  EXPECT_TRUE(decision.stop);
  EXPECT_FALSE(decision.emit);
  EXPECT_EQ(decision.reason, FinishReason::kEos);
  EXPECT_EQ(condition.emitted_tokens(), 1);
}

TEST(StopConditionTest, IgnoreEosMakesItAnOrdinaryToken) {
  StopCondition condition({.max_tokens = 10, .ignore_eos = true}, 3, 100);
  std::string shown;
  const StopDecision decision = Feed(condition, kEosId, "", &shown);
  EXPECT_FALSE(decision.stop);
  EXPECT_TRUE(decision.emit);
}

TEST(StopConditionTest, EndsAtAStopIdAndShowsTheHeldText) {
  StopCondition condition({.max_tokens = 10, .stop_strings = {"END"}, .stop_token_ids = {9}}, 3,
                          100);
  std::string shown;
  EXPECT_FALSE(Feed(condition, 5, "E", &shown).stop);
  EXPECT_EQ(shown, "");
  const StopDecision decision = Feed(condition, 9, "nine", &shown);
  EXPECT_EQ(decision.reason, FinishReason::kStopToken);
  EXPECT_FALSE(decision.emit);
  EXPECT_EQ(shown, "E");
}

TEST(StopConditionTest, EmitsTheTokensOfAStopStringButNotItsText) {
  StopCondition condition({.max_tokens = 2, .stop_strings = {"ab"}}, 3, 100);
  std::string shown;
  Feed(condition, 5, "xa", &shown);
  const StopDecision decision = Feed(condition, 6, "b", &shown);
  EXPECT_TRUE(decision.emit);
  EXPECT_EQ(decision.reason, FinishReason::kStopString);  // comes before max_tokens
  EXPECT_EQ(condition.stop_string(decision.stop_string_index), "ab");
  EXPECT_EQ(shown, "x");
  EXPECT_EQ(condition.emitted_tokens(), 2);
}

TEST(StopConditionTest, EndsWithTheLastAllowedToken) {
  StopCondition condition({.max_tokens = 2, .stop_strings = {"bc"}}, 3, 100);
  std::string shown;
  EXPECT_FALSE(Feed(condition, 5, "a", &shown).stop);
  const StopDecision decision = Feed(condition, 6, "b", &shown);
  EXPECT_EQ(decision.reason, FinishReason::kMaxTokens);
  EXPECT_TRUE(decision.emit);
  EXPECT_EQ(shown, "ab");
}

TEST(StopConditionTest, EndsWhenTheContextIsFull) {
  StopCondition condition({.max_tokens = int64_t{1} << 40}, 98, 100);
  std::string shown;
  EXPECT_FALSE(Feed(condition, 5, "a", &shown).stop);
  EXPECT_EQ(Feed(condition, 5, "b", &shown).reason, FinishReason::kContextFull);
}

TEST(StopConditionTest, ValidatesEachOption) {
  EXPECT_TRUE(ValidateStoppingOptions({.max_tokens = 1}, 10).ok());
  EXPECT_TRUE(ValidateStoppingOptions({.max_tokens = 1,
                                       .stop_strings = std::vector<std::string>(16, "x"),
                                       .stop_token_ids = {0, 9}},
                                      10)
                  .ok());
  const struct {
    StoppingOptions options;
    const char* field;
    absl::string_view reason;
  } cases[] = {
      {{.max_tokens = 0}, "stopping.max_tokens", kReasonBadParameter},
      {{.max_tokens = 1, .stop_strings = {"a", ""}},
       "stopping.stop_strings[1]",
       kReasonBadParameter},
      {{.max_tokens = 1, .stop_strings = std::vector<std::string>(17, "x")},
       "stopping.stop_strings",
       kReasonBadParameter},
      {{.max_tokens = 1, .stop_strings = {std::string(257, 'x')}},
       "stopping.stop_strings[0]",
       kReasonBadParameter},
      {{.max_tokens = 1, .stop_strings = {"\xFF"}},
       "stopping.stop_strings[0]",
       kReasonBadParameter},
      {{.max_tokens = 1, .stop_token_ids = {3, 10}},
       "stopping.stop_token_ids[1]",
       kReasonBadTokenId},
      {{.max_tokens = 1, .stop_token_ids = {-1}}, "stopping.stop_token_ids[0]", kReasonBadTokenId},
  };
  for (const auto& bad : cases) {
    const absl::Status status = ValidateStoppingOptions(bad.options, 10);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), bad.reason);
    ASSERT_EQ(FieldViolationsOf(status).size(), 1u) << status;
    EXPECT_EQ(FieldViolationsOf(status)[0].field, bad.field);
  }
  EXPECT_EQ(
      FieldViolationsOf(ValidateStoppingOptions(
                            {.max_tokens = 0, .stop_strings = {""}, .stop_token_ids = {10}}, 10))
          .size(),
      3u);
}

}  // namespace
}  // namespace trireme::sample

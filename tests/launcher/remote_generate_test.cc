#include "launcher/remote_generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error_reason.h"
#include "tests/support/served_replica.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(RemoteGenerate, StreamsTheAnswer) {
  ServedReplica replica;
  RemoteGenerateOptions options;
  options.endpoint = replica.address();
  options.text = "ab";
  options.max_tokens = 5;
  options.want_prompt_token_ids = true;
  std::string streamed;
  const auto result = GenerateRemotely(
      options, [&](absl::string_view text) { streamed.append(text.data(), text.size()); });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->prompt_token_ids, (std::vector<int32_t>{'a', 'b'}));
  EXPECT_EQ(result->prompt_tokens, 2);
  std::string text;
  for (int64_t position = 0; position < 5; ++position) {
    const int32_t id = FakeController::TokenAt({'a', 'b'}, 0, position, 300);
    EXPECT_EQ(result->token_ids[static_cast<size_t>(position)], id);
    text += FakeController::TextOf(id);
  }
  EXPECT_EQ(result->text, text);
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(result->finish_reason, schedule::FinishReason::kMaxTokens);
}

TEST(RemoteGenerate, SendsOnlyWhatIsSet) {
  ServedReplica replica;
  RemoteGenerateOptions options;
  options.endpoint = replica.address();
  options.messages = {{"system", "be short"}, {"user", "hi"}};
  options.max_tokens = 1;
  ASSERT_TRUE(GenerateRemotely(options, nullptr).ok());
  EXPECT_EQ(replica.controller().submitted().back().sampling.temperature, 1.0f)
      << "the model's default";
  options.temperature = 0;
  options.seed = 7;
  ASSERT_TRUE(GenerateRemotely(options, nullptr).ok());
  EXPECT_EQ(replica.controller().submitted().back().sampling.temperature, 0.0f);
  EXPECT_EQ(replica.controller().submitted().back().sampling.seed, 7u);
}

TEST(RemoteGenerate, KeepsTheServersReason) {
  ServedReplica replica;
  RemoteGenerateOptions options;
  options.endpoint = replica.address();
  options.token_ids = {100000};
  const absl::Status status = GenerateRemotely(options, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), kReasonBadTokenId);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tokens.token_ids[0]"));
}

TEST(RemoteGenerate, SaysThatNothingAnswers) {
  RemoteGenerateOptions options;
  options.endpoint = "127.0.0.1:1";
  options.text = "a";
  options.connect_timeout = absl::Milliseconds(200);
  const absl::Status status = GenerateRemotely(options, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing answers at 127.0.0.1:1"));
  options.endpoint = "nonsense";
  EXPECT_EQ(GenerateRemotely(options, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RemoteGenerate, ATimeoutIsADeadline) {
  ServedReplica replica;
  replica.controller().Hold(true);
  RemoteGenerateOptions options;
  options.endpoint = replica.address();
  options.text = "a";
  options.timeout = absl::Milliseconds(100);
  EXPECT_EQ(GenerateRemotely(options, nullptr).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace trireme

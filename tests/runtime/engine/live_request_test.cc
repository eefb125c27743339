#include "runtime/engine/live_request.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_reason.h"
#include "tests/support/byte_tokenizer.h"

namespace trireme::engine {
namespace {

using ::testing::ElementsAre;

const absl::Time kStart = absl::FromUnixSeconds(100);

class LiveRequestTest : public ::testing::Test {
 protected:
  std::unique_ptr<LiveRequest> Create(schedule::Request request) {
    stream_ = std::make_shared<ResponseStream>(10);
    auto live =
        LiveRequest::CreateGenerate(std::move(request), stream_, tokenizer_.get(), 100, kStart);
    EXPECT_TRUE(live.ok()) << live.status();
    return live.ok() ? *std::move(live) : nullptr;
  }

  schedule::Request MakeRequest() {
    schedule::Request request;
    request.id = "r";
    request.prompt = {65, 66};
    request.stopping.max_tokens = 10;
    return request;
  }

  // Feeds the bytes of `text` and returns whether the last one ended the request.
  static bool Feed(LiveRequest& live, const std::string& text) {
    bool ended = false;
    for (const char byte : text) {
      EXPECT_FALSE(ended);
      ended = live.TakeToken(static_cast<unsigned char>(byte), -0.25f, kStart + absl::Seconds(3));
    }
    return ended;
  }

  Delta Take() {
    Delta delta;
    stream_->Take(&delta);
    return delta;
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
  std::shared_ptr<ResponseStream> stream_;
};

TEST_F(LiveRequestTest, StreamsTokensAndWholeCharacters) {
  const auto live = Create(MakeRequest());
  live->Accept(kStart + absl::Seconds(1));
  EXPECT_FALSE(Feed(*live, "a\xC3"));
  EXPECT_EQ(Take().text, "a");
  EXPECT_FALSE(Feed(*live, "\xA9"));
  const Delta delta = Take();
  EXPECT_EQ(delta.text, "\xC3\xA9");
  EXPECT_THAT(delta.token_ids, ElementsAre(0xA9));
  EXPECT_EQ(delta.first_position, 2);
  EXPECT_TRUE(delta.logprobs.empty());
}

TEST_F(LiveRequestTest, EndsWithTheEndTokenAndFlushesHeldBytes) {
  schedule::Request request = MakeRequest();
  request.stopping.stop_strings = {"xyz"};
  request.want_logprobs = true;
  const auto live = Create(request);
  live->Accept(kStart + absl::Seconds(1));
  EXPECT_FALSE(Feed(*live, "axy\xE2"));
  EXPECT_TRUE(live->TakeToken(testing::kByteTokenizerEos, 0, kStart + absl::Seconds(4)));
  live->Finish(kStart + absl::Seconds(5));
  const Delta delta = Take();
  EXPECT_EQ(delta.text, "axy\xEF\xBF\xBD");
  EXPECT_THAT(delta.token_ids, ElementsAre('a', 'x', 'y', 0xE2));
  EXPECT_EQ(delta.logprobs.size(), 4u);
  ASSERT_TRUE(delta.ending.has_value());
  EXPECT_EQ(delta.ending->reason, schedule::FinishReason::kEos);
  EXPECT_EQ(delta.ending->stop_token_id, testing::kByteTokenizerEos);
  EXPECT_EQ(delta.ending->usage.prompt_tokens, 2);
  EXPECT_EQ(delta.ending->usage.generated_tokens, 4);
  EXPECT_EQ(delta.ending->timings.queue, absl::Seconds(1));
  EXPECT_EQ(delta.ending->timings.first_token, absl::Seconds(3));
  EXPECT_EQ(delta.ending->timings.total, absl::Seconds(5));
}

TEST_F(LiveRequestTest, CutsTheTextBeforeAStopString) {
  schedule::Request request = MakeRequest();
  request.stopping.stop_strings = {"never", "lo w"};
  const auto live = Create(request);
  live->Accept(kStart);
  EXPECT_TRUE(Feed(*live, "hello w"));
  live->Finish(kStart);
  const Delta delta = Take();
  EXPECT_EQ(delta.text, "hel");
  EXPECT_EQ(delta.token_ids.size(), 7u);
  EXPECT_EQ(delta.ending->reason, schedule::FinishReason::kStopString);
  EXPECT_EQ(delta.ending->stop_string, "lo w");
}

TEST_F(LiveRequestTest, MatchesStopStringsEvenWhenNobodyReadsText) {
  schedule::Request request = MakeRequest();
  request.stopping.stop_strings = {"b"};
  request.want_text = false;
  const auto live = Create(request);
  live->Accept(kStart);
  EXPECT_TRUE(Feed(*live, "ab"));
  live->Finish(kStart);
  EXPECT_EQ(Take().text, "");
}

// Whatever token the first attempt died after, the texts of both attempts join to the whole.
TEST_F(LiveRequestTest, ResumesTextAndStopStringsWhereTheFirstAttemptEnded) {
  const std::string output =
      "a\xC3\xA9-EN\xE2\x82\xAC"
      "EN";
  for (size_t cut = 0; cut <= output.size(); ++cut) {
    schedule::Request request = MakeRequest();
    request.stopping.max_tokens = 100;
    request.stopping.stop_strings = {"END"};
    const auto first = Create(request);
    first->Accept(kStart);
    EXPECT_FALSE(Feed(*first, output.substr(0, cut)));
    const std::string first_text = Take().text;

    for (const char byte : output.substr(0, cut)) {
      request.emitted.push_back(static_cast<unsigned char>(byte));
    }
    const auto second = Create(request);
    EXPECT_FALSE(second->ended_on_arrival());
    second->Accept(kStart);
    EXPECT_TRUE(Feed(*second, output.substr(cut) + "D"));
    second->Finish(kStart);
    const Delta delta = Take();
    EXPECT_EQ(first_text + delta.text, "a\xC3\xA9-EN\xE2\x82\xAC") << cut;
    EXPECT_EQ(delta.first_position, static_cast<int64_t>(cut));
    EXPECT_EQ(delta.ending->usage.generated_tokens, static_cast<int64_t>(output.size() + 1 - cut));
  }
}

TEST_F(LiveRequestTest, EndsOnArrivalWhenTheEmittedTokensCompleteTheRequest) {
  schedule::Request request = MakeRequest();
  request.stopping.max_tokens = 2;
  request.emitted = {'a', 'b'};
  const auto live = Create(request);
  ASSERT_TRUE(live->ended_on_arrival());
  live->FinishOnArrival(kStart);
  const Delta delta = Take();
  EXPECT_TRUE(delta.token_ids.empty());
  EXPECT_EQ(delta.ending->reason, schedule::FinishReason::kMaxTokens);
  EXPECT_EQ(delta.ending->usage.generated_tokens, 0);
}

// An attempt that died after its last token has not sent the tail; the next one sends it, marked,
// since the one after that would send it again.
TEST_F(LiveRequestTest, TheTextAfterTheLastTokenComesWithTheEndAndIsMarked) {
  schedule::Request request = MakeRequest();
  request.stopping.max_tokens = 2;
  const auto first = Create(request);
  first->Accept(kStart);
  EXPECT_TRUE(Feed(*first, "a\xE2"));
  EXPECT_EQ(Take().text, "a");

  request.emitted = {'a', 0xE2};
  const auto second = Create(request);
  ASSERT_TRUE(second->ended_on_arrival());
  second->FinishOnArrival(kStart);
  const Delta delta = Take();
  EXPECT_EQ(delta.text, "\xEF\xBF\xBD");
  EXPECT_EQ(delta.text_tail_bytes, 3u);
}

TEST_F(LiveRequestTest, RefusesEmittedTokensThatGoPastTheEnd) {
  for (const std::vector<int32_t>& emitted : {std::vector<int32_t>{'a', testing::kByteTokenizerEos},
                                              std::vector<int32_t>{'x', 'y', 'z', 'a'}}) {
    schedule::Request request = MakeRequest();
    request.stopping.stop_strings = {"xyz"};
    request.emitted = emitted;
    const auto live = LiveRequest::CreateGenerate(request, std::make_shared<ResponseStream>(1),
                                                  tokenizer_.get(), 100, kStart);
    EXPECT_EQ(live.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(live.status()), kReasonResumeMismatch);
  }
}

TEST_F(LiveRequestTest, EndsOnceWithAnError) {
  const auto live = Create(MakeRequest());
  live->FinishWithError(absl::CancelledError("gone"), kStart + absl::Seconds(2));
  const Delta delta = Take();
  EXPECT_EQ(delta.ending->status, absl::CancelledError("gone"));
  EXPECT_EQ(delta.ending->timings.queue, absl::Seconds(2));
}

TEST_F(LiveRequestTest, KnowsBothWaysOfBeingCancelled) {
  const auto by_reader = Create(MakeRequest());
  EXPECT_FALSE(by_reader->cancelled());
  stream_->Cancel();
  EXPECT_TRUE(by_reader->cancelled());
  const auto by_name = Create(MakeRequest());
  by_name->RequestCancel();
  EXPECT_TRUE(by_name->cancelled());
}

TEST_F(LiveRequestTest, HandsScoredRowsToTheJob) {
  ScoreJob job;
  std::vector<int64_t> rows;
  job.on_rows = [&rows](int64_t first_row, absl::Span<const float> logits) {
    rows.push_back(first_row);
    rows.push_back(static_cast<int64_t>(logits.size()));
  };
  const auto live = LiveRequest::CreateScore("s", {1, 2, 3}, &job, kStart);
  const std::vector<float> logits(10);
  EXPECT_FALSE(live->TakeLogits(0, absl::MakeConstSpan(logits).subspan(0, 10), 5));
  EXPECT_TRUE(live->TakeLogits(2, absl::MakeConstSpan(logits).subspan(0, 5), 5));
  live->FinishScore();
  EXPECT_TRUE(job.done.HasBeenNotified());
  EXPECT_TRUE(job.status.ok());
  EXPECT_THAT(rows, ElementsAre(0, 10, 2, 5));
}

}  // namespace
}  // namespace trireme::engine

#include "runtime/engine/controller.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/mutex.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/controller_fixture.h"

namespace trireme::engine {
namespace {

using testing::Answer;
using testing::ControllerFixture;
using testing::ControllerFixtureOptions;
using ::testing::ElementsAre;
using testing::FakeGenerate;
using testing::kFixtureVocabulary;
using testing::MakeRequest;

std::vector<int32_t> MakePrompt(std::mt19937& random, size_t tokens) {
  std::vector<int32_t> prompt(tokens);
  for (int32_t& token_id : prompt) {
    token_id = static_cast<int32_t>(random() % kFixtureVocabulary);
  }
  return prompt;
}

TEST(ControllerTest, AnswersOneRequest) {
  ControllerFixture fixture({});
  schedule::Request request = MakeRequest("a", {1, 2, 3}, 20);
  request.want_logprobs = true;
  const Answer answer = ControllerFixture::Read(*fixture.Submit(request));
  EXPECT_EQ(answer.accepts, 1);
  EXPECT_EQ(answer.first_position, 0);
  EXPECT_EQ(answer.token_ids, FakeGenerate({1, 2, 3}, 20, kFixtureVocabulary));
  ASSERT_EQ(answer.logprobs.size(), 20u);
  EXPECT_EQ(answer.logprobs[7], -7);
  EXPECT_TRUE(answer.ending.status.ok());
  EXPECT_EQ(answer.ending.reason, schedule::FinishReason::kMaxTokens);
  EXPECT_EQ(answer.ending.usage.prompt_tokens, 3);
  EXPECT_EQ(answer.ending.usage.generated_tokens, 20);
}

// Many clients at once, random lengths, every budget and depth, with and without scarce blocks:
// each answer is what the request gives alone, and the books are even afterwards.
TEST(ControllerTest, AnswersDoNotDependOnTheCompany) {
  for (const int32_t tokens : {1, 7, 64, 512}) {
    for (const int depth : {1, 2, 3}) {
      ControllerFixtureOptions options;
      options.depth = depth;
      options.controller.limits.tokens = tokens;
      options.controller.limits.blocks = depth == 2 ? 64 : 10;
      ControllerFixture fixture(options);
      std::vector<std::thread> clients;
      for (uint32_t client = 0; client < 3; ++client) {
        clients.emplace_back([&fixture, client, tokens] {
          std::mt19937 random(client + 100 * static_cast<uint32_t>(tokens));
          for (int round = 0; round < 4; ++round) {
            std::vector<std::shared_ptr<ResponseStream>> streams;
            std::vector<schedule::Request> requests;
            for (int index = 0; index < 3; ++index) {
              requests.push_back(MakeRequest(absl::StrCat(client, ".", round, ".", index),
                                             MakePrompt(random, 1 + random() % 60),
                                             1 + random() % 50));
              streams.push_back(fixture.Submit(requests.back()));
            }
            for (size_t index = 0; index < streams.size(); ++index) {
              const Answer answer = ControllerFixture::Read(*streams[index]);
              ASSERT_TRUE(answer.ending.status.ok()) << answer.ending.status;
              ASSERT_EQ(answer.token_ids,
                        FakeGenerate(requests[index].prompt, requests[index].stopping.max_tokens,
                                     kFixtureVocabulary));
            }
          }
        });
      }
      for (std::thread& client : clients) {
        client.join();
      }
      Notification idle;
      fixture.controller().Drain([&idle] { idle.Notify(); });
      idle.WaitForNotification();
      const Load load = fixture.controller().load();
      EXPECT_EQ(load.blocks_free, load.blocks_total);
      EXPECT_EQ(load.running_sequences, 0);
      EXPECT_EQ(load.waiting_requests, 0);
      EXPECT_EQ(load.queued_tokens, 0);
      EXPECT_TRUE(load.draining);
      EXPECT_GT(load.step, 0u);
    }
  }
}

TEST(ControllerTest, RecomputesAPreemptedSequenceWithoutEmittingTwice) {
  ControllerFixtureOptions options;
  options.controller.limits.blocks = 8;
  options.controller.limits.context = 128;
  options.depth = 2;
  ControllerFixture fixture(options);
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (int32_t index = 0; index < 4; ++index) {
    streams.push_back(fixture.Submit(MakeRequest(absl::StrCat(index), {index, 7, 9}, 100)));
  }
  int64_t recomputed = 0;
  for (int32_t index = 0; index < 4; ++index) {
    const Answer answer = ControllerFixture::Read(*streams[static_cast<size_t>(index)]);
    EXPECT_EQ(answer.accepts, 1);
    EXPECT_EQ(answer.token_ids, FakeGenerate({index, 7, 9}, 100, kFixtureVocabulary));
    recomputed += answer.ending.usage.recomputed_tokens;
  }
  EXPECT_GT(recomputed, 0);
  EXPECT_GT(fixture.controller().load().preemptions, 0);
}

TEST(ControllerTest, ContinuesAfterTheEmittedTokensOfAnotherAttempt) {
  ControllerFixture fixture({});
  const std::vector<int32_t> whole = FakeGenerate({5, 6}, 30, kFixtureVocabulary);
  for (const size_t emitted : {size_t{1}, size_t{17}, size_t{29}, size_t{30}}) {
    schedule::Request request = MakeRequest("resumed", {5, 6}, 30);
    request.emitted.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(emitted));
    const Answer answer = ControllerFixture::Read(*fixture.Submit(request));
    EXPECT_EQ(
        answer.token_ids,
        std::vector<int32_t>(whole.begin() + static_cast<std::ptrdiff_t>(emitted), whole.end()));
    EXPECT_EQ(answer.ending.reason, schedule::FinishReason::kMaxTokens);
    EXPECT_EQ(answer.ending.usage.prompt_tokens, 2);
    if (emitted < 30) {
      EXPECT_EQ(answer.first_position, static_cast<int64_t>(emitted));
    }
  }
}

TEST(ControllerTest, FillsTheContextToItsLastPosition) {
  ControllerFixture fixture({});
  std::mt19937 random(1);
  const std::vector<int32_t> prompt = MakePrompt(random, 120);
  const Answer answer = ControllerFixture::Read(*fixture.Submit(MakeRequest("a", prompt, 1000000)));
  EXPECT_EQ(answer.token_ids, FakeGenerate(prompt, 8, kFixtureVocabulary));
  EXPECT_EQ(answer.ending.reason, schedule::FinishReason::kContextFull);
}

TEST(ControllerTest, EndsAtEndOfGenerationTokensOfTheTokenizer) {
  const auto tokenizer = testing::MakeByteTokenizer();
  ControllerFixtureOptions options;
  options.controller.vocabulary = testing::kByteTokenizerVocabulary;
  options.controller.limits.context = 2048;
  options.controller.limits.blocks = 300;
  options.tokenizer = tokenizer.get();
  ControllerFixture fixture(options);
  const std::vector<int32_t> endless =
      FakeGenerate({3, 4}, 1500, testing::kByteTokenizerVocabulary);
  const auto end = std::find(endless.begin(), endless.end(), testing::kByteTokenizerEos);
  ASSERT_NE(end, endless.end());
  const Answer answer = ControllerFixture::Read(*fixture.Submit(MakeRequest("a", {3, 4}, 1500)));
  EXPECT_EQ(answer.token_ids, std::vector<int32_t>(endless.begin(), end));
  EXPECT_EQ(answer.ending.reason, schedule::FinishReason::kEos);
  EXPECT_EQ(answer.ending.stop_token_id, testing::kByteTokenizerEos);
  EXPECT_FALSE(answer.text.empty());

  schedule::Request request = MakeRequest("b", {3, 4}, 1500);
  request.stopping.ignore_eos = true;
  EXPECT_EQ(ControllerFixture::Read(*fixture.Submit(request)).token_ids, endless);
}

TEST(ControllerTest, RefusesBadRequestsBeforeTheyQueue) {
  ControllerFixture fixture({});
  const auto refusal = [&fixture](schedule::Request request) {
    return fixture.controller().Submit(std::move(request), std::make_shared<ResponseStream>(1));
  };
  EXPECT_EQ(ReasonOf(refusal(MakeRequest("a", {}, 1))), kReasonBadParameter);
  EXPECT_EQ(ReasonOf(refusal(MakeRequest("a", {kFixtureVocabulary}, 1))), kReasonBadTokenId);
  EXPECT_EQ(ReasonOf(refusal(MakeRequest("a", {1}, 0))), kReasonBadParameter);
  EXPECT_EQ(ReasonOf(refusal(MakeRequest("a", std::vector<int32_t>(128, 1), 1))),
            kReasonPromptTooLong);
  schedule::Request request = MakeRequest("a", {1}, 1);
  request.stopping.stop_strings = {"x"};
  EXPECT_EQ(ReasonOf(refusal(request)), kReasonBadParameter);  // there is no tokenizer
  EXPECT_EQ(fixture.controller().load().waiting_requests, 0);
}

TEST(ControllerTest, RefusesDuplicateIdsAndAFullQueue) {
  ControllerFixtureOptions options;
  options.controller.limits.sequences = 1;
  options.controller.queued_requests_max = 2;
  ControllerFixture fixture(options);
  fixture.rank().Hold(true);
  const auto running = fixture.Submit(MakeRequest("a", {1}, 3));
  fixture.rank().WaitForPlans(1);
  const auto queued = fixture.Submit(MakeRequest("b", {1}, 3));
  EXPECT_EQ(fixture.controller()
                .Submit(MakeRequest("a", {1}, 3), std::make_shared<ResponseStream>(1))
                .code(),
            absl::StatusCode::kAlreadyExists);
  const auto last = fixture.Submit(MakeRequest("c", {1}, 3));
  EXPECT_EQ(ReasonOf(fixture.controller().Submit(MakeRequest("d", {1}, 3),
                                                 std::make_shared<ResponseStream>(1))),
            kReasonOverloaded);
  fixture.rank().Hold(false);
  for (const auto& stream : {running, queued, last}) {
    EXPECT_EQ(ControllerFixture::Read(*stream).token_ids.size(), 3u);
  }
}

TEST(ControllerTest, ScoresASequenceInChunksBesideOtherWork) {
  ControllerFixture fixture({});
  std::mt19937 random(3);
  const std::vector<int32_t> token_ids = MakePrompt(random, 50);
  const auto company = fixture.Submit(MakeRequest("company", {1, 2}, 100));
  std::vector<float> logits;
  int64_t next_row = 0;
  const absl::Status status =
      fixture.controller().Score(token_ids, [&](int64_t first_row, absl::Span<const float> rows) {
        EXPECT_EQ(first_row, next_row);
        next_row += static_cast<int64_t>(rows.size()) / kFixtureVocabulary;
        logits.insert(logits.end(), rows.begin(), rows.end());
      });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(logits.size(), 50u * kFixtureVocabulary);
  for (size_t row = 0; row < 50; ++row) {
    const int32_t next = testing::FakeNextToken(absl::MakeConstSpan(token_ids).subspan(0, row + 1),
                                                kFixtureVocabulary);
    ASSERT_EQ(logits[row * kFixtureVocabulary + 3], testing::FakeRank::Logit(next, 3));
  }
  EXPECT_EQ(ControllerFixture::Read(*company).token_ids,
            FakeGenerate({1, 2}, 100, kFixtureVocabulary));
  EXPECT_EQ(fixture.controller().Score({}, nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(fixture.controller().Score({-1}, nullptr)), kReasonBadTokenId);
  EXPECT_EQ(ReasonOf(fixture.controller().Score(std::vector<int32_t>(129, 1), nullptr)),
            kReasonPromptTooLong);
}

TEST(ControllerTest, RefusesOptionsThatCannotWork) {
  InProcessPipeline pipeline(1, 1);
  ControllerOptions options = ControllerFixtureOptions().controller;
  options.limits.blocks = 0;
  const auto controller = Controller::Create(options, &pipeline, nullptr, SteadyClock());
  EXPECT_EQ(controller.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(controller.status().message()), ::testing::HasSubstr("limits.blocks"));
}

}  // namespace
}  // namespace trireme::engine

#include "runtime/engine/response_stream.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::engine {
namespace {

TEST(ResponseStreamTest, CoalescesWhatWasNotReadAndCountsPositions) {
  ResponseStream stream(10);
  Delta delta;
  EXPECT_FALSE(stream.Take(&delta));
  stream.Accept(5);
  stream.Push(7, -0.5f, "a");
  stream.Push(8, -1.5f, "");
  ASSERT_TRUE(stream.Take(&delta));
  EXPECT_TRUE(delta.accepted);
  EXPECT_EQ(delta.first_position, 5);
  EXPECT_THAT(delta.token_ids, ::testing::ElementsAre(7, 8));
  EXPECT_THAT(delta.logprobs, ::testing::ElementsAre(-0.5f, -1.5f));
  EXPECT_EQ(delta.text, "a");
  EXPECT_FALSE(delta.ending.has_value());

  stream.Push(9, -1.0f, "b");
  stream.Finish({.status = {},
                 .reason = schedule::FinishReason::kMaxTokens,
                 .stop_string = {},
                 .stop_token_id = -1,
                 .usage = {},
                 .timings = {}},
                "tail");
  ASSERT_TRUE(stream.Take(&delta));
  EXPECT_FALSE(delta.accepted);
  EXPECT_EQ(delta.first_position, 7);
  EXPECT_THAT(delta.token_ids, ::testing::ElementsAre(9));
  EXPECT_EQ(delta.text, "btail");
  ASSERT_TRUE(delta.ending.has_value());
  EXPECT_EQ(delta.ending->reason, schedule::FinishReason::kMaxTokens);
  EXPECT_FALSE(stream.Take(&delta));
  stream.Wait();  // returns at once after the ending
}

TEST(ResponseStreamTest, CallsTheListenerForEachNews) {
  ResponseStream stream(10);
  int calls = 0;
  stream.SetListener([&calls] { ++calls; });
  stream.Accept();
  stream.Push(1, std::nullopt, "");
  stream.Finish({}, "");
  EXPECT_EQ(calls, 3);
}

TEST(ResponseStreamTest, RemembersThatTheReaderWentAway) {
  ResponseStream stream(10);
  EXPECT_FALSE(stream.cancelled());
  stream.Cancel();
  EXPECT_TRUE(stream.cancelled());
}

TEST(ResponseStreamTest, LosesNothingBetweenTwoThreads) {
  constexpr int kTokens = 20000;
  ResponseStream stream(100);
  std::thread writer([&stream] {
    stream.Accept();
    for (int token = 0; token < kTokens; ++token) {
      stream.Push(token, std::nullopt, "x");
    }
    stream.Finish({}, "y");
  });
  Delta delta;
  int64_t tokens = 0;
  size_t text_bytes = 0;
  bool ended = false;
  while (!ended) {
    stream.Wait();
    ASSERT_TRUE(stream.Take(&delta));
    ASSERT_EQ(delta.first_position, tokens);
    for (const int32_t token_id : delta.token_ids) {
      ASSERT_EQ(token_id, tokens);
      ++tokens;
    }
    text_bytes += delta.text.size();
    ended = delta.ending.has_value();
  }
  writer.join();
  EXPECT_EQ(tokens, kTokens);
  EXPECT_EQ(text_bytes, kTokens + 1u);
}

}  // namespace
}  // namespace trireme::engine

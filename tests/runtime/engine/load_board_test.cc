#include "runtime/engine/load_board.h"

#include "gtest/gtest.h"

namespace trireme::engine {
namespace {

TEST(LoadBoardTest, GivesPercentilesOfTheLatestSteps) {
  LoadBoard board;
  EXPECT_EQ(board.Read().step_time_p99, absl::ZeroDuration());
  for (int step = 0; step < 1000; ++step) {
    board.StepFinished(absl::Seconds(100), absl::Seconds(100), 0);
  }
  for (int step = 1; step <= 128; ++step) {
    board.StepFinished(absl::Milliseconds(step), absl::Milliseconds(step), 0);
  }
  // Of 1..128 ms: the 64th and the 126th (127 * 99 / 100 = 125, counted from 0).
  EXPECT_EQ(board.Read().step_time_p50, absl::Milliseconds(64));
  EXPECT_EQ(board.Read().step_time_p99, absl::Milliseconds(126));
  EXPECT_EQ(board.Read().prefill_tokens_per_second, 0);
}

TEST(LoadBoardTest, MeasuresPrefillInStepsThatHaveIt) {
  LoadBoard board;
  for (int step = 0; step < 50; ++step) {
    board.StepFinished(absl::Seconds(1), absl::Milliseconds(100), 50);
    board.StepFinished(absl::Seconds(1), absl::Seconds(9), 0);
  }
  EXPECT_NEAR(board.Read().prefill_tokens_per_second, 500, 1e-6);
}

TEST(LoadBoardTest, KeepsWhatIsPublished) {
  LoadBoard board;
  Load load;
  load.blocks_free = 7;
  load.step = 9;
  board.Publish(load);
  board.StepFinished(absl::Seconds(1), absl::Seconds(1), 0);
  EXPECT_EQ(board.Read().blocks_free, 7);
  EXPECT_EQ(board.Read().step, 9u);
  EXPECT_EQ(board.Read().step_time_p50, absl::Seconds(1));
}

}  // namespace
}  // namespace trireme::engine

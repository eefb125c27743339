#include "launcher/child_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = ChildLogEvent::Kind;

TEST(ChildLogTest, ARankSaysWhereItRuns) {
  const auto event = ParseChildLogLine(
      "2026-11-30T12:00:00.123Z INFO rank=3 start phase=launch host=node-b process=4711");
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, Kind::kPhase);
  EXPECT_EQ(event->rank, 3);
  EXPECT_EQ(event->phase, "launch");
  EXPECT_EQ(event->host, "node-b");
  EXPECT_EQ(event->process, 4711);
}

TEST(ChildLogTest, AProcessWithoutRanksIsRankZero) {
  const auto event = ParseChildLogLine("2026-11-30T12:00:00.123Z INFO start phase=load");
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->rank, 0);
  EXPECT_EQ(event->phase, "load");
}

TEST(ChildLogTest, LoadingAndServingCarryNumbers) {
  const auto loading =
      ParseChildLogLine("2026-11-30T12:00:00.123Z INFO rank=1 loading percent=40 bytes=1048576");
  ASSERT_TRUE(loading.has_value());
  EXPECT_EQ(loading->kind, Kind::kLoading);
  EXPECT_EQ(loading->percent, 40);
  EXPECT_EQ(loading->bytes, 1048576);
  const auto serving =
      ParseChildLogLine("2026-11-30T12:00:00.123Z INFO rank=0 serving port=7101 model=m");
  ASSERT_TRUE(serving.has_value());
  EXPECT_EQ(serving->kind, Kind::kServing);
  EXPECT_EQ(serving->port, 7101);
}

TEST(ChildLogTest, LossesAndErrorsKeepTheirReason) {
  const auto lost = ParseChildLogLine(
      "2026-11-30T12:00:00.123Z ERROR rank=0 replica lost reason=\"rank=1 host=n step=7: gone\"");
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->kind, Kind::kLost);
  EXPECT_EQ(lost->text, "rank=1 host=n step=7: gone");
  // A stopped rank 0 says nothing.
  const auto left = ParseChildLogLine(
      "2026-11-30T12:00:00.123Z ERROR rank=1 rank leaves reason=\"rank=0 host=n step=7: silent\"");
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->kind, Kind::kLost);
  EXPECT_EQ(left->text, "rank=0 host=n step=7: silent");
  const auto error = ParseChildLogLine("trireme: x.gguf: no such file");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind, Kind::kError);
  EXPECT_EQ(error->text, "x.gguf: no such file");
}

TEST(ChildLogTest, OtherLinesSayNothing) {
  for (const char* line : {"", "mpirun noticed that process rank 1", "INFO x",
                           "2026-11-30T12:00:00.123Z INFO rank=0 signal received signal=10"}) {
    EXPECT_FALSE(ParseChildLogLine(line).has_value()) << line;
  }
}

TEST(ChildLogTest, AFollowerGetsWholeLinesOnceFromWhereItBegan) {
  const std::string path = ::testing::TempDir() + "child_log_test.log";
  std::ofstream(path) << "before\n";
  LogFollower follower(path);
  EXPECT_THAT(follower.TakeLines(), IsEmpty());
  std::ofstream(path, std::ios::app) << "one\ntw";
  EXPECT_THAT(follower.TakeLines(), ElementsAre("one"));
  std::ofstream(path, std::ios::app) << "o\n\nthree\n";
  EXPECT_THAT(follower.TakeLines(), ElementsAre("two", "", "three"));
  EXPECT_THAT(follower.TakeLines(), IsEmpty());
}

TEST(ChildLogTest, AFileThatIsNotThereYetIsEmpty) {
  const std::string path = ::testing::TempDir() + "child_log_test_absent.log";
  std::remove(path.c_str());
  LogFollower follower(path);
  EXPECT_THAT(follower.TakeLines(), IsEmpty());
  std::ofstream(path) << "first\n";
  EXPECT_THAT(follower.TakeLines(), ElementsAre("first"));
}

}  // namespace
}  // namespace trireme::launcher

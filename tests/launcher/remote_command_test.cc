#include "launcher/remote_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;

TEST(RemoteCommandTest, WordsReachTheShellOfAHostUnchanged) {
  EXPECT_THAT(WordsOnHost({"a b", "it's"}, "h", "/agent"),
              ElementsAre("/agent", "h", "'a b'", "'it'\\''s'"));
  EXPECT_THAT(WordsOnHost({"x"}, "h", ""),
              ElementsAre("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "h", "'x'"));
}

TEST(RemoteCommandTest, OutputErrorsAndCodeComeBack) {
  const auto result =
      RunToItsEnd({"sh", "-c", "echo out; echo err >&2; cat; exit 5"}, absl::Seconds(30));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "err\n");
  EXPECT_EQ(result->exit_code, 5);
  const auto killed = RunToItsEnd({"sh", "-c", "kill -9 $$"}, absl::Seconds(30));
  ASSERT_TRUE(killed.ok());
  EXPECT_EQ(killed->exit_code, 137);
}

TEST(RemoteCommandTest, MuchOutputIsCutAndStillReadToItsEnd) {
  const auto result =
      RunToItsEnd({"sh", "-c", "head -c 3000000 /dev/zero; exit 3"}, absl::Seconds(30));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->output.size(), size_t{1} << 20);
  EXPECT_EQ(result->exit_code, 3);
}

TEST(RemoteCommandTest, WhatDoesNotEndIsKilledWithAllItStarted) {
  const absl::Time begin = absl::Now();
  const auto result = RunToItsEnd({"sh", "-c", "sleep 100 & sleep 100"}, absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST(RemoteCommandTest, AProgramThatIsNotThereIsNamed) {
  const auto result = RunToItsEnd({"/no/such/program"}, absl::Seconds(30));
  EXPECT_TRUE(absl::IsNotFound(result.status()));
  EXPECT_EQ(result.status().message(), "cannot run /no/such/program: No such file or directory");
}

}  // namespace
}  // namespace trireme::launcher

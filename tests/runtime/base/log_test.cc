#include "runtime/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override {
    SetLogLevel(LogLevel::kInfo);
    SetLogContext("");
    SetLogForm(LogForm::kText);
  }

  static std::string Written(LogLevel level, absl::string_view text) {
    ::testing::internal::CaptureStderr();
    Log(level, text);
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogTest, WritesTimeLevelAndText) {
  EXPECT_THAT(Written(LogLevel::kInfo, "started port=1"),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "
                           "INFO started port=1\n"));
  EXPECT_THAT(Written(LogLevel::kWarning, "x"), HasSubstr(" WARN x\n"));
  EXPECT_THAT(Written(LogLevel::kError, "x"), HasSubstr(" ERROR x\n"));
}

TEST_F(LogTest, DropsLinesBelowTheLevel) {
  EXPECT_EQ(Written(LogLevel::kDebug, "x"), "");
  SetLogLevel(LogLevel::kError);
  EXPECT_EQ(Written(LogLevel::kWarning, "x"), "");
  SetLogLevel(LogLevel::kDebug);
  EXPECT_THAT(Written(LogLevel::kDebug, "x"), HasSubstr("DEBUG x"));
}

TEST_F(LogTest, PutsTheContextBeforeTheText) {
  SetLogContext("rank=2");
  EXPECT_THAT(Written(LogLevel::kInfo, "x"), HasSubstr(" INFO rank=2 x\n"));
}

TEST_F(LogTest, TextCannotForgeALine) {
  EXPECT_THAT(Written(LogLevel::kInfo, "a\nERROR b\x1b[31m"),
              HasSubstr(" INFO a\\nERROR b\\033[31m\n"));
}

TEST_F(LogTest, AJsonLineHasAFieldForEachKey) {
  SetLogForm(LogForm::kJson);
  SetLogContext("rank=2");
  const auto line = nlohmann::json::parse(
      Written(LogLevel::kWarning, "rank leaves step=7 reason=\"no heartbeat\" at last"));
  EXPECT_EQ(line["level"], "WARN");
  EXPECT_EQ(line["event"], "rank leaves at last");
  EXPECT_EQ(line["rank"], "2");
  EXPECT_EQ(line["step"], "7");
  EXPECT_EQ(line["reason"], "no heartbeat");
  EXPECT_EQ(line["ts"].get<std::string>().size(), 24u);
  EXPECT_EQ(line.size(), 6u);
}

TEST_F(LogTest, NoTextForgesAJsonLine) {
  SetLogForm(LogForm::kJson);
  const auto line = nlohmann::json::parse(
      Written(LogLevel::kInfo, "a\n{\"level\":\"ERROR\"} level=ERROR ts=0 open=\"\xff"));
  EXPECT_EQ(line["level"], "INFO");
  EXPECT_NE(line["ts"], "0");
  EXPECT_EQ(line["open"], "\ufffd");
}

TEST_F(LogTest, LinesOfThreadsDoNotMix) {
  ::testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int line = 0; line < 50; ++line) {
        Log(LogLevel::kInfo, absl::StrCat("thread=", i, " ", std::string(100, 'x'), " end"));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 200U);
  for (const std::string& line : lines) {
    EXPECT_THAT(line, MatchesRegex(".* INFO thread=[0-3] x{100} end"));
  }
}

TEST_F(LogTest, AReaderThatDoesNotReadCostsLinesAndNeverWaits) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const int standard_error = ::dup(STDERR_FILENO);
  ASSERT_EQ(::dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
  for (int line = 0; line < 2000; ++line) {  // 200 KB; a pipe holds 64 KiB
    Log(LogLevel::kInfo, std::string(70, 'x'));
  }
  ASSERT_EQ(::dup2(standard_error, STDERR_FILENO), STDERR_FILENO);
  ::close(standard_error);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace trireme

#include "launcher/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/flags/flag.h"

ABSL_FLAG(int, test_count, 3, "a count, as in --test-count 5");
ABSL_FLAG(bool, test_loud, false, "louder");
ABSL_FLAG(std::string, test_title, "", "a title");

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Subcommand& Example() {
  static const auto* const example =
      new Subcommand{.name = "example",
                     .summary = "For tests",
                     .synopsis = "WORD",
                     .example = "trireme example word",
                     .flags = {"test_count", "test_loud", "title=test_title"},
                     .words_max = 2,
                     .run = [](const std::vector<std::string>&) { return ExitCode::kOk; }};
  return *example;
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  return std::string(ParseArguments(Example(), arguments).status().message());
}

TEST(CommandLineTest, TakesValuesInAllSpellings) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--test-count", "5"}, {"--test-count=5"}, {"--test_count=5"}}) {
    absl::SetFlag(&FLAGS_test_count, 0);
    ASSERT_TRUE(ParseArguments(Example(), arguments).ok());
    EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 5);
  }
}

TEST(CommandLineTest, BoolsNeedNoValueAndHaveANegation) {
  ASSERT_TRUE(ParseArguments(Example(), {"--test-loud"}).ok());
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_loud));
  ASSERT_TRUE(ParseArguments(Example(), {"--notest-loud"}).ok());
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_loud));
}

TEST(CommandLineTest, WordsAreWhatIsNoFlagAndEverythingAfterTwoHyphens) {
  const auto words = ParseArguments(Example(), {"one", "--test-count", "1", "--", "--test-count"});
  ASSERT_TRUE(words.ok());
  EXPECT_THAT(*words, ElementsAre("one", "--test-count"));
}

TEST(CommandLineTest, ASubcommandMaySpellAFlagDifferently) {
  ASSERT_TRUE(ParseArguments(Example(), {"--title", "x"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_title), "x");
  EXPECT_THAT(ErrorOf({"--test-title", "x"}), HasSubstr("no such flag"));
}

TEST(CommandLineTest, MistakesNameTheArgumentAndWhatWasWanted) {
  EXPECT_THAT(ErrorOf({"--test-cuont", "5"}), HasSubstr("did you mean --test-count?"));
  EXPECT_THAT(ErrorOf({"--test-count", "five"}), HasSubstr("\"five\" is not a value"));
  EXPECT_THAT(ErrorOf({"--test-count"}), HasSubstr("a value must follow"));
  EXPECT_THAT(ErrorOf({"-x"}), HasSubstr("two hyphens"));
  EXPECT_THAT(ErrorOf({"one", "two", "three"}), HasSubstr("\"three\""));
}

TEST(CommandLineTest, UnknownSubcommandsAreUsageErrors) {
  EXPECT_EQ(RunCommandLine({&Example(), 1}, {"exmaple"}), ExitCode::kUsage);
  EXPECT_EQ(RunCommandLine({&Example(), 1}, {}), ExitCode::kUsage);
  EXPECT_EQ(RunCommandLine({&Example(), 1}, {"example", "word"}), ExitCode::kOk);
}

}  // namespace
}  // namespace trireme::launcher

#include "runtime/sample/stop_strings.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace trireme::sample {
namespace {

struct Outcome {
  std::string shown;
  int index = -1;
};

Outcome Feed(const std::vector<std::string>& strings, const std::vector<std::string>& pieces) {
  StopStrings matcher(strings);
  Outcome outcome;
  for (const std::string& piece : pieces) {
    outcome.index = matcher.Append(piece, &outcome.shown);
    if (outcome.index >= 0) {
      return outcome;
    }
  }
  matcher.Flush(&outcome.shown);
  return outcome;
}

// The worked example of the tokenizer specification, section 6.
TEST(StopStringsTest, HoldsBackWhatMayBecomeAStopString) {
  StopStrings matcher({"\n\n", "END"});
  std::string shown;
  const struct {
    const char* piece;
    const char* shown;
    int index;
  } steps[] = {{"a", "a", -1},    {"E", "a", -1},     {"N", "a", -1},
               {"x", "aENx", -1}, {"\n", "aENx", -1}, {"\n", "aENx", 0}};
  for (const auto& step : steps) {
    EXPECT_EQ(matcher.Append(step.piece, &shown), step.index);
    EXPECT_EQ(shown, step.shown);
  }
}

TEST(StopStringsTest, FindsOverlappingPrefixesAndMatchesAcrossPieces) {
  EXPECT_EQ(Feed({"aab"}, {"aaab"}).shown, "a");
  EXPECT_EQ(Feed({"aab"}, {"a", "a", "a", "b"}).shown, "a");
  EXPECT_EQ(Feed({"abab"}, {"xaba", "cabab"}).shown, "xabac");
  EXPECT_EQ(Feed({"\xC3\xA9t"}, {"\xC3\xA9", "\xC3\xA9", "t!"}).shown, "\xC3\xA9");
}

TEST(StopStringsTest, TakesTheLeftmostAndThenTheLongestMatch) {
  EXPECT_EQ(Feed({"bc", "abcd"}, {"xabcd"}).shown, "x");
  EXPECT_EQ(Feed({"bc", "abcd"}, {"xabcd"}).index, 1);
  EXPECT_EQ(Feed({"ab", "abc"}, {"xabc"}).index, 1);
  EXPECT_EQ(Feed({"ab", "abc"}, {"xab", "c"}).index, 0);
  EXPECT_EQ(Feed({"b", "b"}, {"ab"}).index, 0);
}

TEST(StopStringsTest, ShowsEverythingWhenNothingMatches) {
  EXPECT_EQ(Feed({"END"}, {"EN"}).shown, "EN");
  EXPECT_EQ(Feed({}, {"a", "b"}).shown, "ab");
  EXPECT_EQ(Feed({"END"}, {}).shown, "");
}

// Against a search of the whole text so far after each piece, by definition: leftmost, longest;
// and what is shown is never taken back.
TEST(StopStringsTest, AgreesWithASearchOfTheWholeText) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    const auto word = [&random](size_t bytes_max) {
      std::string text;
      for (size_t left = 1 + random() % bytes_max; left > 0; --left) {
        text += static_cast<char>('a' + random() % 2);
      }
      return text;
    };
    std::vector<std::string> strings;
    for (size_t count = 1 + random() % 3; count > 0; --count) {
      strings.push_back(word(7));
    }
    StopStrings matcher(strings);
    std::string all;
    std::string shown;
    int found = -1;
    while (found < 0 && all.size() < 40) {
      const std::string piece = word(4);
      all += piece;
      found = matcher.Append(piece, &shown);
      size_t start = std::string::npos;
      for (const std::string& string : strings) {
        start = std::min(start, all.find(string));
      }
      if (start == std::string::npos) {
        ASSERT_EQ(found, -1);
        ASSERT_EQ(all.compare(0, shown.size(), shown), 0);
        for (const std::string& string : strings) {
          ASSERT_LT(all.size() - shown.size(), 7u);
          // Nothing longer than needed is held back is checked by the sum below; nothing shorter:
          for (size_t bytes = 1; bytes < string.size() && bytes <= all.size(); ++bytes) {
            if (all.compare(all.size() - bytes, bytes, string, 0, bytes) == 0) {
              ASSERT_LE(shown.size(), all.size() - bytes);
            }
          }
        }
        continue;
      }
      ASSERT_GE(found, 0);
      ASSERT_EQ(shown, all.substr(0, start));
      size_t longest = 0;
      for (const std::string& string : strings) {
        if (all.compare(start, string.size(), string) == 0) {
          longest = std::max(longest, string.size());
        }
      }
      ASSERT_EQ(matcher.string(found).size(), longest);
    }
  }
}

}  // namespace
}  // namespace trireme::sample

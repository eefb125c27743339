#include "runtime/text/special_tokens.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

constexpr auto kAllAllowed = [](const SpecialTokenMatch&) { return true; };

std::string Show(const std::vector<SpecialTokenMatch>& matches) {
  std::string shown;
  for (const SpecialTokenMatch& match : matches) {
    shown += std::to_string(match.begin) + "-" + std::to_string(match.end) + ":" +
             std::to_string(match.id) + " ";
  }
  return shown;
}

TEST(SpecialTokenFinder, FindsTokensWhereverTheyStand) {
  const SpecialTokenFinder finder({{"<s>", 1}, {"</s>", 2}});
  EXPECT_EQ(Show(finder.Find("<s>hi</s><s>", kAllAllowed)), "0-3:1 5-9:2 9-12:1 ");
  EXPECT_EQ(Show(finder.Find("", kAllAllowed)), "");
  EXPECT_EQ(Show(finder.Find("<s <s", kAllAllowed)), "");
}

TEST(SpecialTokenFinder, PrefersTheLongerTokenEvenWhenItBeginsLater) {
  const SpecialTokenFinder finder({{"aab", 1}, {"abbb", 2}});
  EXPECT_EQ(Show(finder.Find("aabbb", kAllAllowed)), "1-5:2 ");
}

TEST(SpecialTokenFinder, CutsARunIntoTheLongestTokensFromTheLeft) {
  const SpecialTokenFinder finder({{"\n", 1}, {"\n\n", 2}, {"\n\n\n", 3}});
  EXPECT_EQ(Show(finder.Find("\n\n\n\n\n", kAllAllowed)), "0-3:3 3-5:2 ");
}

TEST(SpecialTokenFinder, FallsBackToAShorterTokenWhereTheLongerIsNotAllowed) {
  const SpecialTokenFinder finder({{"ab", 1}, {"xab", 2}});
  const auto not_the_longer = [](const SpecialTokenMatch& match) { return match.id != 2; };
  EXPECT_EQ(Show(finder.Find("xab", not_the_longer)), "1-3:1 ");
}

TEST(SpecialTokenFinder, WorksWithoutTokens) {
  const SpecialTokenFinder finder({});
  EXPECT_TRUE(finder.Find("abc", kAllAllowed).empty());
}

// The definition: for each length from the longest, leftmost first, what touches nothing taken
// before.
std::vector<SpecialTokenMatch> FindSlowly(const std::vector<SpecialToken>& tokens,
                                          const std::string& text) {
  std::vector<bool> taken(text.size());
  std::vector<SpecialTokenMatch> matches;
  for (size_t length = 8; length > 0; --length) {
    for (size_t begin = 0; begin + length <= text.size(); ++begin) {
      const auto first = taken.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = first + static_cast<std::ptrdiff_t>(length);
      for (const SpecialToken& token : tokens) {
        if (token.text == text.substr(begin, length) && std::find(first, last, true) == last) {
          std::fill(first, last, true);
          matches.push_back({begin, begin + length, token.id});
        }
      }
    }
  }
  std::sort(matches.begin(), matches.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return matches;
}

TEST(SpecialTokenFinder, EqualsTheDefinitionOnRandomTokensAndTexts) {
  std::mt19937 random(11);
  const auto word = [&random](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) {
      text.push_back(static_cast<char>('a' + random() % 2));
    }
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<SpecialToken> tokens;
    for (int32_t id = 0; id < 6; ++id) {
      const std::string text = word(1 + random() % 6);
      if (std::none_of(tokens.begin(), tokens.end(),
                       [&text](const SpecialToken& token) { return token.text == text; })) {
        tokens.push_back({text, id});
      }
    }
    const std::string text = word(random() % 40);
    ASSERT_EQ(Show(SpecialTokenFinder(tokens).Find(text, kAllAllowed)),
              Show(FindSlowly(tokens, text)))
        << text;
  }
}

}  // namespace
}  // namespace trireme::text

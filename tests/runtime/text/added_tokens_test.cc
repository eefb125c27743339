#include "runtime/text/added_tokens.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

constexpr auto kTakeAll = [](const AddedToken&, size_t, size_t) {
  return AddedTokenVerdict::kMatch;
};

std::string ShowAdded(const std::vector<SpecialTokenMatch>& matches) {
  std::string shown;
  for (const SpecialTokenMatch& match : matches) {
    shown += std::to_string(match.begin) + "-" + std::to_string(match.end) + ":" +
             std::to_string(match.id) + " ";
  }
  return shown;
}

TEST(AddedTokenFinder, FindsTheLeftmostAndThereTheLongest) {
  const AddedTokenFinder finder(
      {{.content = "abc", .id = 1}, {.content = "ab", .id = 2}, {.content = "bcde", .id = 3}});
  EXPECT_EQ(ShowAdded(finder.Find("abcde", kTakeAll)), "0-3:1 ");
  EXPECT_EQ(ShowAdded(finder.Find("abxbcde", kTakeAll)), "0-2:2 3-7:3 ");
}

TEST(AddedTokenFinder, SwallowsWhiteSpaceWhereTheFlagsSaySo) {
  const AddedTokenFinder finder({{.content = "<L>", .id = 1, .takes_left = true},
                                 {.content = "<R>", .id = 2, .takes_right = true}});
  EXPECT_EQ(ShowAdded(finder.Find("a \xe3\x80\x80<L> b", kTakeAll)), "1-8:1 ");
  EXPECT_EQ(ShowAdded(finder.Find("a <R> \n b", kTakeAll)), "2-8:2 ");
  EXPECT_EQ(ShowAdded(finder.Find("<R>  <L>", kTakeAll)), "0-5:2 5-8:1 ");
}

// The order of the reference: a token in white space that another one swallowed is found all the
// same ("x<R>  \n y" of the fixtures).
TEST(AddedTokenFinder, FindsTokensInSwallowedWhiteSpace) {
  const AddedTokenFinder finder(
      {{.content = "<R>", .id = 2, .takes_right = true}, {.content = "  ", .id = 3}});
  EXPECT_EQ(ShowAdded(finder.Find("x<R>  \n y", kTakeAll)), "1-8:2 4-6:3 ");
}

TEST(AddedTokenFinder, SingleWordsStandBetweenOtherCharacters) {
  const AddedTokenFinder finder({{.content = "oar", .id = 1, .single_word = true}});
  EXPECT_EQ(ShowAdded(finder.Find("oar, oars oar_ \xc3\xa9oar (oar)", kTakeAll)), "0-3:1 22-25:1 ");
}

TEST(AddedTokenFinder, AsksWhetherATokenMayMatch) {
  const AddedTokenFinder finder({{.content = "<a>", .id = 1}, {.content = "<a><b>", .id = 2}});
  const auto without_longer = [](AddedTokenVerdict verdict) {
    return [verdict](const AddedToken& token, size_t, size_t) {
      return token.id == 2 ? verdict : AddedTokenVerdict::kMatch;
    };
  };
  EXPECT_EQ(ShowAdded(finder.Find("<a><b>", without_longer(AddedTokenVerdict::kAbsent))), "0-3:1 ");
  EXPECT_EQ(ShowAdded(finder.Find("<a><b>", without_longer(AddedTokenVerdict::kText))), "");
}

TEST(AddedTokens, TakeTheirOwnIdOrTheNextFreeOne) {
  std::vector<std::string> tokens = {"a", "b"};
  const auto added = ReadAddedTokens(
      nlohmann::json::parse(
          R"([{"id": 1, "content": "b"}, {"id": 2, "content": "<s>", "special": true}])"),
      "added_tokens", &tokens);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(tokens, (std::vector<std::string>{"a", "b", "<s>"}));
  for (const char* list : {R"([{"id": 0, "content": "b"}])", R"([{"id": 9, "content": "x"}])",
                           R"([{"content": "x"}])", R"([{"id": 3}])"}) {
    EXPECT_FALSE(ReadAddedTokens(nlohmann::json::parse(list), "added_tokens", &tokens).ok());
  }
}

}  // namespace
}  // namespace trireme::text

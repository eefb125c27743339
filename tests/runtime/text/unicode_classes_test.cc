#include "runtime/text/unicode_classes.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

TEST(UnicodeClasses, RunsAreAscendingAndDifferFromTheirNeighbours) {
  const absl::Span<const UnicodeRun> runs = UnicodeRuns();
  EXPECT_EQ(runs.front().first, 0u);
  for (size_t i = 1; i < runs.size(); ++i) {
    EXPECT_LT(runs[i - 1].first, runs[i].first);
    EXPECT_NE(runs[i - 1].category, runs[i].category);
  }
}

TEST(UnicodeClasses, KnowsSomeCharactersOfEachCategory) {
  EXPECT_EQ(CategoryOf(U'A'), UnicodeCategory::kUppercaseLetter);
  EXPECT_EQ(CategoryOf(0x17f), UnicodeCategory::kLowercaseLetter);  // long s
  EXPECT_EQ(CategoryOf(0x1c5), UnicodeCategory::kTitlecaseLetter);  // Dz with caron
  EXPECT_EQ(CategoryOf(0x2b0), UnicodeCategory::kModifierLetter);
  EXPECT_EQ(CategoryOf(0x4f60), UnicodeCategory::kOtherLetter);
  EXPECT_EQ(CategoryOf(0xbd), UnicodeCategory::kNumber);  // one half
  EXPECT_EQ(CategoryOf(0x301), UnicodeCategory::kMark);
  EXPECT_EQ(CategoryOf(U'_'), UnicodeCategory::kPunctuation);
  EXPECT_EQ(CategoryOf(U'$'), UnicodeCategory::kSymbol);
  EXPECT_EQ(CategoryOf(0x3000), UnicodeCategory::kWhiteSpace);
  EXPECT_EQ(CategoryOf(0x180e), UnicodeCategory::kOther);  // not white space since Unicode 6.3
  EXPECT_EQ(CategoryOf(0x10ffff), UnicodeCategory::kOther);
}

TEST(UnicodeClasses, EqualsThePublishedRangesOnEveryCodePoint) {
  const auto path = FindFixture("tokenizers/parts/unicode-classes.json");
  if (!path.has_value()) {
    return;
  }
  const std::map<std::string, UnicodeCategory> names = {{"Lu", UnicodeCategory::kUppercaseLetter},
                                                        {"Ll", UnicodeCategory::kLowercaseLetter},
                                                        {"Lt", UnicodeCategory::kTitlecaseLetter},
                                                        {"Lm", UnicodeCategory::kModifierLetter},
                                                        {"Lo", UnicodeCategory::kOtherLetter},
                                                        {"N", UnicodeCategory::kNumber},
                                                        {"M", UnicodeCategory::kMark},
                                                        {"P", UnicodeCategory::kPunctuation},
                                                        {"S", UnicodeCategory::kSymbol},
                                                        {"WS", UnicodeCategory::kWhiteSpace}};
  std::vector<UnicodeCategory> wanted(0x110000, UnicodeCategory::kOther);
  const nlohmann::json file = ReadJson(*path);
  for (const auto& [name, category] : names) {
    for (const auto& range : file["classes"][name]) {
      for (size_t i = range[0].get<size_t>(); i <= range[1].get<size_t>(); ++i) {
        wanted[i] = category;
      }
    }
  }
  int different = 0;
  for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
    different += CategoryOf(code_point) != wanted[code_point] ? 1 : 0;
  }
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace trireme::text

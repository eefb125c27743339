#include "runtime/text/unicode_forms.h"

#include <cstdio>

#include "gtest/gtest.h"
#include "runtime/text/utf8.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

std::string InForm(const std::string& name, absl::string_view text) {
  if (name == "Lowercase") {
    return ToLowerCase(text);
  }
  const UnicodeForm form = name == "NFC"    ? UnicodeForm::kNfc
                           : name == "NFD"  ? UnicodeForm::kNfd
                           : name == "NFKC" ? UnicodeForm::kNfkc
                                            : UnicodeForm::kNfkd;
  return ToUnicodeForm(text, form);
}

// CRC-32 of zip files: the reflected polynomial 0xedb88320, all ones before and after.
class Crc32 {
 public:
  void Add(absl::string_view bytes) {
    for (const char byte : bytes) {
      state_ ^= static_cast<uint8_t>(byte);
      for (int bit = 0; bit < 8; ++bit) {
        state_ = state_ >> 1 ^ ((state_ & 1) != 0 ? 0xedb88320u : 0u);
      }
    }
  }
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = 0xffffffffu;
};

TEST(UnicodeForms, EveryCodePointIsThatOfTheReference) {
  const auto path = FindFixture("tokenizers/parts/normalization.json");
  ASSERT_TRUE(path.has_value());
  const nlohmann::json file = ReadJson(*path);
  for (const auto& [name, wanted] : file["all_code_points"].items()) {
    int changed = 0;
    Crc32 sum;
    for (char32_t code_point = 0; code_point <= 0x10ffff; ++code_point) {
      if (code_point >= 0xd800 && code_point < 0xe000) {
        continue;
      }
      std::string text;
      AppendUtf8(code_point, &text);
      std::string form = InForm(name, text);
      changed += form != text ? 1 : 0;
      form.push_back('\xff');
      sum.Add(form);
    }
    char shown[16];
    std::snprintf(shown, sizeof(shown), "%08x", sum.value());
    EXPECT_EQ(changed, wanted["changed"].get<int>()) << name;
    EXPECT_EQ(std::string(shown), wanted["crc32"].get<std::string>()) << name;
  }
  for (const auto& row : file["cases"]) {
    const std::string text = row["text"];
    for (const char* name : {"NFC", "NFD", "NFKC", "NFKD", "Lowercase"}) {
      EXPECT_EQ(InForm(name, text), row.value(name, text)) << name << row["text"];
    }
  }
}

TEST(UnicodeForms, SortsALongRunOfMarksByClass) {
  // Dot below has class 220, acute 230; an a takes the first of the former.
  std::string mixed = "xa";
  std::string below = "x\xe1\xba\xa1";
  std::string above;
  for (int i = 0; i < 1000; ++i) {
    mixed += "\xcc\x81\xcc\xa3";
    below += i > 0 ? "\xcc\xa3" : "";
    above += "\xcc\x81";
  }
  EXPECT_EQ(ToUnicodeForm(mixed + "y", UnicodeForm::kNfc), below + above + "y");
}

TEST(UnicodeForms, NothingComposesWithTheCodePointBeforeTrailingConsonants) {
  const std::string syllable = "\xea\xb0\x80";  // of U+1100 and U+1161
  const std::string before_consonants = "\xe1\x86\xa7";
  EXPECT_EQ(ToUnicodeForm("\xe1\x84\x80\xe1\x85\xa1" + before_consonants, UnicodeForm::kNfc),
            syllable + before_consonants);
}

TEST(UnicodeForms, StripsWhiteSpaceOfAllKinds) {
  EXPECT_EQ(StripWhiteSpace("\xe3\x80\x80 a\xc2\xa0", true, true), "a");
  EXPECT_EQ(StripWhiteSpace(" a ", false, true), " a");
  EXPECT_EQ(StripWhiteSpace(" \t\n", true, false), "");
}

TEST(UnicodeForms, TakesMarksAway) { EXPECT_EQ(WithoutMarks("e\xcc\x81x"), "ex"); }

}  // namespace
}  // namespace trireme::text

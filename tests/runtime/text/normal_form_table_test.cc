#include "runtime/text/normal_form_table.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/text/unicode_forms.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

constexpr UnicodeForm kForms[] = {UnicodeForm::kNfc, UnicodeForm::kNfd, UnicodeForm::kNfkc,
                                  UnicodeForm::kNfkd};

// What the library makes of a whole text.
std::string FormOfLibrary(const std::string& text, UnicodeForm form) {
  int options = UTF8PROC_STABLE;
  options |= form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc ? UTF8PROC_COMPOSE
                                                                     : UTF8PROC_DECOMPOSE;
  options |= form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd ? UTF8PROC_COMPAT : 0;
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &made,
                                             static_cast<utf8proc_option_t>(options));
  EXPECT_GE(size, 0) << utf8proc_errmsg(size);
  const std::string result(reinterpret_cast<const char*>(made),
                           static_cast<size_t>(std::max<utf8proc_ssize_t>(size, 0)));
  std::free(made);
  return result;
}

// Neither newer than the published tables, nor the one that the library composes by mistake.
bool IsComparable(char32_t code_point) {
  std::vector<int32_t> ours;
  AppendDecomposition(code_point, /*is_compatibility=*/true, &ours);
  std::string text;
  AppendUtf8(code_point, &text);
  std::string joined;
  for (const int32_t part : ours) {
    AppendUtf8(static_cast<char32_t>(part), &joined);
  }
  return code_point != 0x11a7 && joined == FormOfLibrary(text, UnicodeForm::kNfkd);
}

std::vector<char32_t> ComparableCharacters() {
  std::vector<char32_t> characters;
  for (char32_t code_point = 1; code_point <= 0x10ffff; ++code_point) {
    const bool is_surrogate = code_point >= 0xd800 && code_point < 0xe000;
    if (!is_surrogate && IsComparable(code_point)) {
      characters.push_back(code_point);
    }
  }
  return characters;
}

// Characters of which forms make something, with some of which they make nothing between them.
std::vector<char32_t> LivelyCharacters(const std::vector<char32_t>& all) {
  std::vector<char32_t> lively;
  for (const char32_t code_point : all) {
    const bool is_hangul = code_point >= 0xac00 && code_point < 0xd7a4;
    const bool is_jamo = code_point >= 0x1100 && code_point < 0x1200;
    if ((NormalFormTable::Get().Of(code_point) != 0 && !is_hangul) || is_jamo ||
        (is_hangul && code_point % 97 == 0) || code_point < 0x80) {
      lively.push_back(code_point);
    }
  }
  return lively;
}

bool LooksNormal(const std::vector<char32_t>& characters, UnicodeForm form) {
  int last_class = 0;
  for (const char32_t character : characters) {
    const NormalFormBits bits = NormalFormTable::Get().Of(character);
    const int combining_class = bits & kCombiningClassBits;
    if ((bits & DoubtfulBits(form)) != 0 ||
        (combining_class != 0 && combining_class < last_class)) {
      return false;
    }
    last_class = combining_class;
  }
  return true;
}

TEST(NormalFormTable, WhatLooksNormalIsLeftAsItIs) {
  const std::vector<char32_t> all = ComparableCharacters();
  EXPECT_GT(all.size(), 1100000u);
  int normal = 0;
  for (const char32_t character : all) {
    std::string text;
    AppendUtf8(character, &text);
    const UnicodeForm form = kForms[character % 4];
    if (LooksNormal({character}, form)) {
      ++normal;
      ASSERT_EQ(FormOfLibrary(text, form), text) << static_cast<uint32_t>(character);
    }
  }
  EXPECT_GT(normal, 1000000);
}

TEST(NormalFormTable, RandomSequencesBecomeThoseOfTheLibrary) {
  const std::vector<char32_t> lively = LivelyCharacters(ComparableCharacters());
  std::mt19937 random(11);
  int normal = 0;
  for (int round = 0; round < 40000; ++round) {
    std::vector<char32_t> characters;
    std::string text;
    const size_t few = 1 + random() % 5;  // the same ones come again
    const size_t first = random() % (lively.size() - few);
    for (size_t i = 1 + random() % 12; i > 0; --i) {
      const bool is_near = random() % 2 == 0;
      characters.push_back(is_near ? lively[first + random() % few]
                                   : lively[random() % lively.size()]);
      AppendUtf8(characters.back(), &text);
    }
    for (const UnicodeForm form : kForms) {
      const std::string wanted = FormOfLibrary(text, form);
      ASSERT_EQ(ToUnicodeForm(text, form), wanted) << text;
      if (LooksNormal(characters, form)) {
        ++normal;
        ASSERT_EQ(text, wanted);
      }
    }
  }
  EXPECT_GT(normal, 1000);
}

TEST(NormalFormTable, NamesTheMarksThatJoin) {
  const NormalFormTable& table = NormalFormTable::Get();
  EXPECT_EQ(table.Of(U'a'), 0);
  EXPECT_EQ(table.Of(0x301), kJoinsPrevious | 230);              // combining acute
  EXPECT_EQ(table.Of(0xe9), kChangesInNfd | kChangesInNfkd);     // e with acute
  EXPECT_EQ(table.Of(0xfb01), kChangesInNfkc | kChangesInNfkd);  // the ligature fi
  EXPECT_EQ(table.Of(0x212b) & kChangesInNfc, kChangesInNfc);    // the Angstrom sign
  EXPECT_EQ(table.Of(0xac00), kChangesInNfd | kChangesInNfkd);   // a syllable of Hangul
  EXPECT_EQ(table.Of(0x1161), kJoinsPrevious);                   // its vowel
  EXPECT_EQ(table.Of(0x11a7), 0);
}

}  // namespace
}  // namespace trireme::text

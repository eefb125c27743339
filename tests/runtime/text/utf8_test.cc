#include "runtime/text/utf8.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {
namespace {

TEST(Utf8, ReadsCharactersOfOneToFourBytes) {
  EXPECT_EQ(FirstUtf8Unit("a!").code_point, U'a');
  EXPECT_EQ(FirstUtf8Unit("\xc3\xa9!").code_point, 0xe9u);
  EXPECT_EQ(FirstUtf8Unit("\xe4\xbd\xa0!").code_point, 0x4f60u);
  EXPECT_EQ(FirstUtf8Unit("\xf0\x9f\x98\x80!").code_point, 0x1f600u);
  EXPECT_EQ(FirstUtf8Unit("\xf0\x9f\x98\x80!").bytes, 4u);
}

TEST(Utf8, TellsACutCharacterFromAnInvalidOne) {
  EXPECT_EQ(FirstUtf8Unit("\xf0\x9f\x98").kind, Utf8UnitKind::kIncomplete);
  EXPECT_EQ(FirstUtf8Unit("\xf0\x9f\x98").bytes, 3u);
  EXPECT_EQ(FirstUtf8Unit("\xf0\x9f\x98!").kind, Utf8UnitKind::kInvalid);
  EXPECT_EQ(FirstUtf8Unit("\xf0\x9f\x98!").bytes, 3u);
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndLargeNumbers) {
  for (const absl::string_view text : {"\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
                                       "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80"}) {
    EXPECT_EQ(FirstUtf8Unit(text).kind, Utf8UnitKind::kInvalid) << absl::CHexEscape(text);
    EXPECT_EQ(FirstUtf8Unit(text).bytes, 1u) << absl::CHexEscape(text);
  }
}

TEST(Utf8, WritesWhatItReads) {
  for (const char32_t code_point :
       {0x0u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xd7ffu, 0xe000u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    AppendUtf8(code_point, &text);
    const Utf8Unit unit = FirstUtf8Unit(text);
    EXPECT_EQ(unit.kind, Utf8UnitKind::kCharacter);
    EXPECT_EQ(unit.bytes, text.size());
    EXPECT_EQ(unit.code_point, code_point);
    const Utf8Character character = ValidUtf8At("a" + text + "a", 1);
    EXPECT_EQ(character.code_point, code_point);
    EXPECT_EQ(character.bytes, text.size());
  }
}

TEST(Utf8, ReplacesEachMaximalInvalidSubpart) {
  const auto path = FindFixture("tokenizers/parts/invalid-utf8.json");
  if (!path.has_value()) {
    return;
  }
  const nlohmann::json file = ReadJson(*path);
  ASSERT_GT(file["cases"].size(), 20u);
  for (const auto& row : file["cases"]) {
    const std::string hex = row["bytes_hex"];
    EXPECT_EQ(ReplaceInvalidSubparts(absl::HexStringToBytes(hex)), row["text"].get<std::string>())
        << hex;
  }
}

}  // namespace
}  // namespace trireme::text

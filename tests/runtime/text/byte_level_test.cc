#include "runtime/text/byte_level.h"

#include <set>

#include "gtest/gtest.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

// The checks that specs of byte-level vocabularies list.
TEST(ByteLevel, MapsTheUnprintableBytesInOrderFromU0100) {
  EXPECT_EQ(CharacterOfByte(0x20), 0x120u);
  EXPECT_EQ(CharacterOfByte(0x0a), 0x10au);
  EXPECT_EQ(CharacterOfByte(0x09), 0x109u);
  EXPECT_EQ(CharacterOfByte(0x7f), 0x121u);
  EXPECT_EQ(CharacterOfByte(0x80), 0x122u);
  EXPECT_EQ(CharacterOfByte(0xa0), 0x142u);
  EXPECT_EQ(CharacterOfByte(0xad), 0x143u);
  EXPECT_EQ(CharacterOfByte(0xff), 0xffu);
  EXPECT_EQ(CharacterOfByte('a'), U'a');
}

TEST(ByteLevel, IsOneToOne) {
  std::set<char32_t> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character = CharacterOfByte(static_cast<uint8_t>(byte));
    characters.insert(character);
    EXPECT_EQ(ByteOfCharacter(character), byte);
  }
  EXPECT_EQ(characters.size(), 256u);
  EXPECT_EQ(ByteOfCharacter(U' '), -1);
  EXPECT_EQ(ByteOfCharacter(0x144), -1);
  EXPECT_EQ(ByteOfCharacter(0x4f60), -1);
}

TEST(ByteLevel, DecodesTokenTextsAndKeepsCharactersOutsideTheAlphabet) {
  EXPECT_EQ(DecodeByteLevel("\xc4\xa0hi").bytes, " hi");  // U+0120
  EXPECT_TRUE(DecodeByteLevel("\xc4\xa0hi").in_alphabet);
  EXPECT_EQ(DecodeByteLevel("\xe4\xbd\xa0\xc4\x8a").bytes, "\xe4\xbd\xa0\n");
  EXPECT_FALSE(DecodeByteLevel("\xe4\xbd\xa0\xc4\x8a").in_alphabet);
}

}  // namespace
}  // namespace trireme::text

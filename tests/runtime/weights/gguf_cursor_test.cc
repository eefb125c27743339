#include "runtime/weights/gguf_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::weights {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(GgufCursorTest, ReadsNumbersAtAnyAddress) {
  const ExactBytes bytes("x" + Encoded<uint32_t>(0x01020304) + Encoded<int16_t>(-2));
  GgufCursor cursor("f", bytes.span());
  EXPECT_EQ(*cursor.ReadNumber<uint8_t>("a"), 'x');
  EXPECT_EQ(*cursor.ReadNumber<uint32_t>("b"), 0x01020304U);
  EXPECT_EQ(*cursor.ReadNumber<int16_t>("c"), -2);
  EXPECT_EQ(cursor.offset(), 7);
  EXPECT_EQ(cursor.bytes_left(), 0);
}

TEST(GgufCursorTest, AFieldThatIsCutSaysFileOffsetSubjectAndField) {
  const ExactBytes bytes("abcde");
  GgufCursor cursor("model.gguf", bytes.span());
  ASSERT_TRUE(cursor.Skip(2, "two").ok());
  cursor.SetSubject("tensor w");
  EXPECT_EQ(Message(cursor.ReadNumber<uint32_t>("the type").status()),
            "model.gguf: at byte 2: tensor w: the file ends within the type: wanted 4 bytes, found "
            "3 before the end of file; it is truncated, fetch it again");
  EXPECT_EQ(cursor.offset(), 2);
}

TEST(GgufCursorTest, StringsMayHoldAnythingAndEndWithTheFile) {
  const ExactBytes bytes(EncodedString(std::string("a\0b", 3)) + EncodedString(""));
  GgufCursor cursor("f", bytes.span());
  EXPECT_EQ(*cursor.ReadString("s"), absl::string_view("a\0b", 3));
  EXPECT_EQ(*cursor.ReadString("s"), "");
  EXPECT_EQ(cursor.bytes_left(), 0);
}

TEST(GgufCursorTest, RefusesAStringOneByteTooLongAndTheLongest) {
  for (const uint64_t length : {uint64_t{4}, uint64_t{1} << 31, uint64_t{1} << 63, ~uint64_t{0}}) {
    const ExactBytes bytes(Encoded(length) + "abc");
    GgufCursor cursor("f", bytes.span());
    EXPECT_THAT(Message(cursor.ReadString("the key").status()),
                HasSubstr(absl::StrCat("the length of the key is ", length, " bytes, beyond")));
  }
}

TEST(GgufCursorTest, ACountMustFitInTheRestOfTheFile) {
  const std::string records(24, 'r');
  const ExactBytes fits(Encoded<uint64_t>(3) + records);
  EXPECT_EQ(*GgufCursor("f", fits.span()).ReadCount("n", 8, kNoLimit), 3);
  const ExactBytes too_many(Encoded<uint64_t>(4) + records);
  EXPECT_THAT(Message(GgufCursor("f", too_many.span()).ReadCount("n", 8, kNoLimit).status()),
              HasSubstr("n is 4, too many: the 24 bytes left hold at most 3"));
  // 2^61 records of 8 bytes: the product wraps to 0.
  const ExactBytes wraps(Encoded(uint64_t{1} << 61) + records);
  EXPECT_FALSE(GgufCursor("f", wraps.span()).ReadCount("n", 8, kNoLimit).ok());
  const ExactBytes negative(Encoded(int64_t{-1}) + records);
  EXPECT_FALSE(GgufCursor("f", negative.span()).ReadCount("n", 8, kNoLimit).ok());
}

TEST(GgufCursorTest, ACountKeepsItsOwnLimit) {
  const ExactBytes bytes(Encoded<uint64_t>(3) + "abc");
  EXPECT_THAT(Message(GgufCursor("f", bytes.span()).ReadCount("n", 1, 2).status()),
              HasSubstr("wanted at most 2"));
}

TEST(GgufCursorTest, NamesAreEscapedAndCutForMessages) {
  EXPECT_EQ(PrintableName("blk.0.w"), "blk.0.w");
  EXPECT_EQ(PrintableName("a\nb\x1b"), "a\\nb\\033");
  EXPECT_EQ(PrintableName("h\xc3\xa9"), "h\xc3\xa9");
  EXPECT_EQ(PrintableName("\xff"), "\\377");
  EXPECT_EQ(PrintableName(std::string(101, 'a')), std::string(100, 'a') + "... (101 bytes)");
  // The two bytes of the last letter stand at 99 and 100: it is left out as a whole.
  EXPECT_EQ(PrintableName(std::string(99, 'a') + "\xc3\xa9"),
            std::string(99, 'a') + "... (101 bytes)");
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

// The boundaries are those of the table in RFC 3629, section 4.
TEST(Utf8Test, AcceptsTheFirstAndLastCharacterOfEachLength) {
  EXPECT_EQ(Utf8CharacterBytes(absl::string_view("\0", 1)), 1U);
  EXPECT_EQ(Utf8CharacterBytes("\x7f"), 1U);
  EXPECT_EQ(Utf8CharacterBytes("\xc2\x80"), 2U);
  EXPECT_EQ(Utf8CharacterBytes("\xdf\xbf"), 2U);
  EXPECT_EQ(Utf8CharacterBytes("\xe0\xa0\x80"), 3U);
  EXPECT_EQ(Utf8CharacterBytes("\xed\x9f\xbf"), 3U);
  EXPECT_EQ(Utf8CharacterBytes("\xee\x80\x80"), 3U);
  EXPECT_EQ(Utf8CharacterBytes("\xef\xbf\xbf"), 3U);
  EXPECT_EQ(Utf8CharacterBytes("\xf0\x90\x80\x80"), 4U);
  EXPECT_EQ(Utf8CharacterBytes("\xf4\x8f\xbf\xbf"), 4U);
}

TEST(Utf8Test, RefusesOverlongFormsSurrogatesAndNumbersPastTheEnd) {
  EXPECT_FALSE(IsValidUtf8("\xc0\xaf"));
  EXPECT_FALSE(IsValidUtf8("\xc1\xbf"));
  EXPECT_FALSE(IsValidUtf8("\xe0\x9f\xbf"));
  EXPECT_FALSE(IsValidUtf8("\xf0\x8f\xbf\xbf"));
  EXPECT_FALSE(IsValidUtf8("\xed\xa0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(IsValidUtf8("\xf5\x80\x80\x80"));
}

TEST(Utf8Test, FindsAnInvalidByteAtAnyPlaceOfAText) {
  for (size_t size = 1; size < 20; ++size) {
    EXPECT_TRUE(IsValidUtf8(std::string(size, 'a') + "\xc3\xa9" + std::string(9, 'b')));
    for (size_t place = 0; place < size; ++place) {
      std::string text(size, 'a');
      text[place] = '\x80';
      EXPECT_FALSE(IsValidUtf8(text)) << size << " " << place;
    }
  }
}

TEST(Utf8Test, RefusesCutAndStrayBytes) {
  EXPECT_EQ(Utf8CharacterBytes(""), 0U);
  EXPECT_FALSE(IsValidUtf8("a\x80"));
  EXPECT_FALSE(IsValidUtf8("\xe4\xb8"));
  EXPECT_FALSE(
      IsValidUtf8("\xe4\xb8"
                  "a"));
  EXPECT_FALSE(IsValidUtf8("\xff\xfe"));
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_TRUE(IsValidUtf8("h\xc3\xa9llo"));
}

TEST(Utf8Test, ReplacesOnlyWhatIsNotWellFormed) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xff\xc3\xa9\xe4\xb8z"),
            "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(ReplaceInvalidUtf8("plain"), "plain");
}

}  // namespace
}  // namespace trireme

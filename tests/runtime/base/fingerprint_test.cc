#include "runtime/base/fingerprint.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

// Known values of the 64-bit FNV-1a test suite (isthe.com/chongo/tech/comp/fnv).
TEST(FingerprintTest, AgreesWithThePublishedVectors) {
  Fingerprint empty;
  EXPECT_EQ(empty.value(), 0xcbf29ce484222325u);
  Fingerprint a;
  a.Add("a");
  EXPECT_EQ(a.value(), 0xaf63dc4c8601ec8cu);
  Fingerprint foobar;
  foobar.Add("foo");
  foobar.Add("bar");
  EXPECT_EQ(foobar.value(), 0x85944171f73967e8u);
}

TEST(FingerprintTest, NumbersAreLittleEndianBytes) {
  Fingerprint number;
  number.Add(int64_t{'a'});
  Fingerprint bytes;
  bytes.Add(absl::string_view("a\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(number.value(), bytes.value());
}

}  // namespace
}  // namespace trireme

#include "runtime/balance/keyed_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace trireme::balance {
namespace {

// Appendix A of the paper: key 00 01 .. 0f, message 00 01 .. 0e.
TEST(KeyedHashTest, GivesTheValueOfThePaper) {
  std::string message;
  for (char byte = 0; byte < 15; ++byte) {
    message.push_back(byte);
  }
  EXPECT_EQ(KeyedHash(0x0706050403020100u, 0x0f0e0d0c0b0a0908u, message), 0xa129ca6149be45e5u);
}

TEST(KeyedHashTest, DependsOnKeyAndLength) {
  EXPECT_NE(KeyedHash(1, 2, "x"), KeyedHash(1, 3, "x"));
  EXPECT_NE(KeyedHash(1, 2, ""), KeyedHash(1, 2, absl::string_view("\0", 1)));
}

}  // namespace
}  // namespace trireme::balance

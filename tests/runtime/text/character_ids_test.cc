#include "runtime/text/character_ids.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

TEST(CharacterIds, FindsWhatWasSetLastOnBothSidesOfItsArray) {
  CharacterIds ids;
  for (const char32_t code_point : {0x0u, 0x2fffu, 0x3000u, 0x10ffffu}) {
    EXPECT_EQ(ids.Find(code_point), -1);
    ids.Set(code_point, 7);
    ids.Set(code_point, static_cast<int32_t>(code_point));
  }
  for (const char32_t code_point : {0x0u, 0x2fffu, 0x3000u, 0x10ffffu}) {
    EXPECT_EQ(ids.Find(code_point), static_cast<int32_t>(code_point));
    EXPECT_EQ(ids.Find(code_point ^ 1), -1);
  }
}

}  // namespace
}  // namespace trireme::text

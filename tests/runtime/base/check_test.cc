#include "runtime/base/check.h"

#include <gtest/gtest.h>

#include <string>

namespace trireme {
namespace {

TEST(CheckTest, PassesWhatHolds) {
  CHECK(true);
  CHECK_EQ(2 + 2, 4);
  CHECK_NE(1, 2);
  CHECK_LT(1, 2);
  CHECK_LE(2, 2);
  CHECK_GT(2, 1);
  CHECK_GE(2, 2);
}

TEST(CheckTest, EvaluatesEachValueOnce) {
  int calls = 0;
  CHECK_EQ(++calls, 1);
  EXPECT_EQ(calls, 1);
}

TEST(CheckTest, CanStandAsTheOnlyStatementOfAnIf) {
  int reached = 0;
  if (reached == 0)
    CHECK_EQ(1, 1);
  else
    reached = 1;
  EXPECT_EQ(reached, 0);
}

TEST(CheckDeathTest, NamesPlaceAndConditionAndEndsTheProcess) {
  EXPECT_DEATH(CHECK(1 > 2), "check_test.cc:[0-9]+: check failed: 1 > 2");
}

TEST(CheckDeathTest, PrintsBothValues) {
  const int found = 3;
  const std::string name = "abc";
  EXPECT_DEATH(CHECK_EQ(found, 4), "found == 4 \\(3 against 4\\)");
  EXPECT_DEATH(CHECK_NE(name, "abc"), "\\(abc against abc\\)");
  EXPECT_DEATH(CHECK_LT(found, 3), "found < 3 \\(3 against 3\\)");
  EXPECT_DEATH(CHECK_LE(found, 2), "found <= 2");
  EXPECT_DEATH(CHECK_GT(found, 3), "found > 3");
  EXPECT_DEATH(CHECK_GE(found, 4), "found >= 4");
}

}  // namespace
}  // namespace trireme

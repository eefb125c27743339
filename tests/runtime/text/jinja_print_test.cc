#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/text/jinja_print.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaPrintTest, WritesFloatsLikePython) {
  EXPECT_EQ(FloatText(1.0), "1.0");
  EXPECT_EQ(FloatText(0.1), "0.1");
  EXPECT_EQ(FloatText(1e16), "1e+16");
  EXPECT_EQ(FloatText(1e15), "1000000000000000.0");
  EXPECT_EQ(FloatText(1e-7), "1e-07");
  EXPECT_EQ(FloatText(0.0001), "0.0001");
  EXPECT_EQ(FloatText(-0.0), "-0.0");
  EXPECT_EQ(FloatText(123456789.125), "123456789.125");
  EXPECT_EQ(FloatText(5e-324), "5e-324");
}

TEST(JinjaPrintTest, WritesIntegersOfOneHundredAndTwentyEightBits) {
  EXPECT_EQ(IntegerText(0), "0");
  EXPECT_EQ(IntegerText(-7), "-7");
  EXPECT_EQ(IntegerText(static_cast<Integer>(1) << 126), "85070591730234615865843651857942052864");
  EXPECT_EQ(IntegerText(-(static_cast<Integer>(1) << 126) * 2),
            "-170141183460469231731687303715884105728");
}

TEST(JinjaPrintTest, QuotesLikePython) {
  EXPECT_EQ(QuotedText("it's"), "\"it's\"");
  EXPECT_EQ(QuotedText("say \"x\""), "'say \"x\"'");
  EXPECT_EQ(QuotedText("both ' and \""), "'both \\' and \"'");
  EXPECT_EQ(QuotedText(std::string("\n\t\\\u00e9\0", 6)), "'\\n\\t\\\\\u00e9\\x00'");
  EXPECT_EQ(QuotedText("\u200b"), "'\\u200b'");
}

TEST(JinjaPrintTest, PrintsConstantsAndContainers) {
  EXPECT_EQ(Rendered("{{ none }}{{ true }}{{ [1, 'a', none, true, 2.5] }}{{ {'a': (1,)} }}"),
            "NoneTrue[1, 'a', None, True, 2.5]{'a': (1,)}");
  EXPECT_EQ(Printed("range(3) ~ [1].count"), "range(0, 3)<builtin_function_or_method>");
}

TEST(JinjaPrintTest, StopsAtDataThatContainsItself) {
  EXPECT_THAT(Rendered("{% set n = namespace() %}{% set n.a = n %}{{ n }}"),
              HasSubstr("nested deeper than the limit of 128"));
}

}  // namespace
}  // namespace trireme::text::jinja

#include "runtime/text/jinja_conversion.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text::jinja {
namespace {

std::string Integers(Integer value, const Conversion& how) {
  Runtime runtime(RuntimeLimits{}, FixtureTime());
  const auto text = FormatInteger(runtime, value, how);
  return text.ok() ? std::string(text->bytes()) : std::string(text.status().message());
}

std::string Floats(double value, const Conversion& how) {
  Runtime runtime(RuntimeLimits{}, FixtureTime());
  const auto text = FormatFloat(runtime, value, how);
  return text.ok() ? std::string(text->bytes()) : std::string(text.status().message());
}

TEST(JinjaConversionTest, WritesIntegersInAnyBase) {
  EXPECT_EQ(Integers(255, {.type = 'd'}), "255");
  EXPECT_EQ(Integers(-255, {.type = 'x'}), "-ff");
  EXPECT_EQ(Integers(255, {.alternate = true, .type = 'X'}), "0XFF");
  EXPECT_EQ(Integers(-1234567, {.grouping = ',', .type = 'd'}), "-1,234,567");
  EXPECT_EQ(Integers(static_cast<Integer>(1) << 100, {.type = 'd'}),
            "1267650600228229401496703205376");
}

TEST(JinjaConversionTest, PadsBetweenSignAndDigits) {
  EXPECT_EQ(Integers(-5, {.fill = "0", .align = '=', .width = 4, .type = 'd'}), "-005");
  EXPECT_EQ(Integers(5, {.align = '<', .sign = '+', .width = 4, .type = 'd'}), "+5  ");
  EXPECT_EQ(Integers(5, {.align = '^', .width = 4, .type = 'd'}), " 5  ");
}

TEST(JinjaConversionTest, RoundsFloatsToThePrecision) {
  EXPECT_EQ(Floats(3.14159, {.precision = 2, .type = 'f'}), "3.14");
  EXPECT_EQ(Floats(12345.678, {.precision = 1, .type = 'e'}), "1.2e+04");
  EXPECT_EQ(Floats(0.25, {.precision = 0, .type = '%'}), "25%");
  EXPECT_EQ(Floats(1234.5, {.grouping = ',', .precision = 1, .type = 'f'}), "1,234.5");
  EXPECT_EQ(Floats(2.5, {}), "2.5");
}

TEST(JinjaConversionTest, CutsTextAndKeepsItsOrigin) {
  Runtime runtime(RuntimeLimits{}, FixtureTime());
  const TracedText text("\u00e9ab", Origin::kUntrusted);
  const auto cut = FormatText(runtime, text, {.width = 4, .precision = 2}, '>');
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->bytes(), "  \u00e9a");
  EXPECT_EQ(cut->Runs().size(), 2U);
}

TEST(JinjaConversionTest, RefusesHugeWidths) {
  EXPECT_NE(Integers(1, {.width = int64_t{1} << 40, .type = 'd'}).find("limit of"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme::text::jinja

#include "runtime/weights/gguf_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::weights {
namespace {

using ::testing::HasSubstr;

// The bytes live as long as the reading does.
class Reading {
 public:
  Reading(uint32_t type, const std::string& value) : bytes_(Encoded(type) + value) {
    GgufCursor cursor("f", bytes_.span());
    value_ = ReadGgufValue(bytes_.span(), cursor);
    bytes_left_ = cursor.bytes_left();
  }
  const GgufValue& value() const { return *value_; }
  bool ok() const { return value_.ok() && bytes_left_ == 0; }
  std::string message() const { return std::string(value_.status().message()); }

 private:
  ExactBytes bytes_;
  absl::StatusOr<GgufValue> value_ = absl::UnknownError("not read");
  int64_t bytes_left_ = 0;
};

// An array that is nested `depth` deep around one u8.
std::string Nested(int depth) {
  return depth == 1 ? EncodedArray(0, 1, "\x07") : EncodedArray(9, 1, Nested(depth - 1));
}

TEST(GgufValueTest, ReadsIntegersOfEveryWidth) {
  EXPECT_EQ(Reading(0, Encoded<uint8_t>(255)).value().AsInteger(), 255);
  EXPECT_EQ(Reading(1, Encoded<int8_t>(-128)).value().AsInteger(), -128);
  EXPECT_EQ(Reading(2, Encoded<uint16_t>(65535)).value().AsInteger(), 65535);
  EXPECT_EQ(Reading(3, Encoded<int16_t>(-32768)).value().AsInteger(), -32768);
  EXPECT_EQ(Reading(4, Encoded<uint32_t>(0xffffffff)).value().AsInteger(), 4294967295);
  EXPECT_EQ(Reading(5, Encoded<int32_t>(-5)).value().AsInteger(), -5);
  EXPECT_EQ(Reading(11, Encoded<int64_t>(-6)).value().AsInteger(), -6);
  EXPECT_EQ(Reading(10, Encoded<uint64_t>(7)).value().AsInteger(), 7);
}

TEST(GgufValueTest, AnUnsignedNumberPast63BitsIsNoInteger) {
  const uint64_t largest = std::numeric_limits<uint64_t>::max();
  const Reading reading(10, Encoded(largest));
  EXPECT_FALSE(reading.value().AsInteger().has_value());
  EXPECT_EQ(reading.value().AsUnsigned(), largest);
}

TEST(GgufValueTest, ReadsFloatsBoolsAndStrings) {
  EXPECT_EQ(Reading(6, Encoded(0.1F)).value().AsFloat(), static_cast<double>(0.1F));
  EXPECT_EQ(Reading(12, Encoded(0.1)).value().AsFloat(), 0.1);
  EXPECT_EQ(Reading(7, std::string(1, '\0')).value().AsBool(), false);
  EXPECT_EQ(Reading(7, "\x02").value().AsBool(), true);
  EXPECT_EQ(Reading(8, EncodedString("h\xff")).value().AsString(), "h\xff");
}

TEST(GgufValueTest, AValueOfAnotherTypeIsNotConverted) {
  const Reading text(8, EncodedString("32"));
  EXPECT_FALSE(text.value().AsInteger().has_value());
  EXPECT_FALSE(text.value().AsFloat().has_value());
  EXPECT_FALSE(text.value().AsBool().has_value());
  EXPECT_FALSE(Reading(6, Encoded(1.0F)).value().AsInteger().has_value());
  EXPECT_FALSE(Reading(4, Encoded<uint32_t>(1)).value().AsString().has_value());
}

TEST(GgufValueTest, WalksOverStrings) {
  const Reading reading(
      9, EncodedArray(8, 3, EncodedString("ab") + EncodedString("") + EncodedString("c")));
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading.value().element_type(), GgufType::kString);
  EXPECT_EQ(reading.value().element_count(), 3);
  GgufElements elements(reading.value());
  EXPECT_EQ(elements.Next()->AsString(), "ab");
  EXPECT_EQ(elements.Next()->AsString(), "");
  EXPECT_EQ(elements.Next()->AsString(), "c");
  EXPECT_FALSE(elements.Next().has_value());
}

TEST(GgufValueTest, WalksOverArraysOfArrays) {
  const Reading reading(
      9, EncodedArray(9, 2,
                      EncodedArray(5, 2, Encoded<int32_t>(1) + Encoded<int32_t>(-2)) +
                          EncodedArray(8, 0, "")));
  ASSERT_TRUE(reading.ok());
  GgufElements outer(reading.value());
  const std::optional<GgufValue> first = outer.Next();
  ASSERT_TRUE(first.has_value());
  GgufElements inner(*first);
  EXPECT_EQ(inner.Next()->AsInteger(), 1);
  EXPECT_EQ(inner.Next()->AsInteger(), -2);
  EXPECT_FALSE(inner.Next().has_value());
  EXPECT_EQ(outer.Next()->element_count(), 0);
  EXPECT_FALSE(outer.Next().has_value());
}

TEST(GgufValueTest, NestingStopsAtFour) {
  EXPECT_TRUE(Reading(9, Nested(4)).ok());
  EXPECT_THAT(Reading(9, Nested(5)).message(), HasSubstr("nested more than 4 deep"));
  // Far past any call stack if each level took a call.
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) {
    deep += EncodedArray(9, 1, "");
  }
  EXPECT_THAT(Reading(9, deep).message(), HasSubstr("nested more than 4 deep"));
}

TEST(GgufValueTest, RefusesUnknownTypes) {
  EXPECT_THAT(Reading(13, "1234").message(), HasSubstr("the value type is 13, unknown"));
  EXPECT_THAT(Reading(0xffffffff, "1234").message(), HasSubstr("type is 4294967295"));
  EXPECT_THAT(Reading(9, EncodedArray(13, 1, "1234")).message(),
              HasSubstr("the element type is 13, unknown"));
}

TEST(GgufValueTest, RefusesCountsThatWrapWhenMultiplied) {
  EXPECT_THAT(Reading(9, EncodedArray(10, uint64_t{1} << 61, "12345678")).message(),
              HasSubstr("too many"));
  EXPECT_THAT(Reading(9, EncodedArray(8, uint64_t{1} << 61, "12345678")).message(),
              HasSubstr("too many"));
  EXPECT_THAT(Reading(9, EncodedArray(9, uint64_t{1} << 40, "123456789012")).message(),
              HasSubstr("too many"));
  EXPECT_FALSE(Reading(9, EncodedArray(0, 2, "1")).ok());
}

TEST(GgufValueTest, RefusesEveryCutOfAValue) {
  const std::string whole =
      EncodedArray(9, 2, EncodedArray(8, 1, EncodedString("abc")) + EncodedArray(5, 1, "1234"));
  ASSERT_TRUE(Reading(9, whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Reading(9, whole.substr(0, size)).ok()) << size;
  }
}

// A file that is changed while it is mapped must not lead a walk out of the value.
TEST(GgufValueTest, AWalkStaysWithinItsBytesWhenLengthsChange) {
  std::string value = EncodedArray(8, 2, EncodedString("ab") + EncodedString("cd"));
  const std::string longer = Encoded<uint64_t>(1000);
  value.replace(12, longer.size(), longer);
  const ExactBytes bytes(value);
  GgufElements strings(GgufValue(GgufType::kArray, bytes.span()));
  EXPECT_FALSE(strings.Next().has_value());

  std::string nested = EncodedArray(9, 1, EncodedArray(5, 1, "1234"));
  nested.replace(12, 4, Encoded<uint32_t>(77));
  const ExactBytes nested_bytes(nested);
  GgufElements arrays(GgufValue(GgufType::kArray, nested_bytes.span()));
  EXPECT_FALSE(arrays.Next().has_value());
}

TEST(GgufValueTest, TypesHaveNames) {
  EXPECT_STREQ(NameOf(GgufType::kUint8), "u8");
  EXPECT_STREQ(NameOf(GgufType::kFloat32), "f32");
  EXPECT_STREQ(NameOf(GgufType::kArray), "array");
  EXPECT_STREQ(NameOf(GgufType::kUint64), "u64");
  EXPECT_STREQ(NameOf(GgufType::kFloat64), "f64");
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/weights/quantized/bitsandbytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/fake_parts.h"

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint8_t> BytesOf(const std::string& text) { return {text.begin(), text.end()}; }

const std::vector<float> kNf4 = {-1.0F,
                                 -0.6961928009986877F,
                                 -0.5250730514526367F,
                                 -0.39491748809814453F,
                                 -0.28444138169288635F,
                                 -0.18477343022823334F,
                                 -0.09105003625154495F,
                                 0.0F,
                                 0.07958029955625534F,
                                 0.16093020141124725F,
                                 0.24611230194568634F,
                                 0.33791524171829224F,
                                 0.44070982933044434F,
                                 0.5626170039176941F,
                                 0.7229568362236023F,
                                 1.0F};

constexpr char kState[] = "m.weight.quant_state.bitsandbytes__nf4";

// The worked block of 8 values with absmax 2.
FakeParts Example() {
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "U8", {4, 1}, {0xa1, 0x7f, 0x6c, 0x47});
  parts.Add<float>("m.weight.absmax", "F32", {1}, {2});
  parts.Add<float>("m.weight.quant_map", "F32", {16}, kNf4);
  const std::vector<uint8_t> state =
      BytesOf(R"({"quant_type": "nf4", "blocksize": 64, "shape": [2, 4]})");
  parts.Add<uint8_t>(kState, "U8", {static_cast<int64_t>(state.size())}, state);
  return parts;
}

TEST(BitsAndBytesTest, ReadsTheHighNibbleFirst) {
  EXPECT_THAT(ValuesOf(Example().Read(BitsAndBytesMethod(*ConfigOf("{}")))),
              ElementsAre(0.24611230194568634F * 2, -0.6961928009986877F * 2, 0, 2,
                          -0.09105003625154495F * 2, 0.44070982933044434F * 2,
                          -0.28444138169288635F * 2, 0));
}

TEST(BitsAndBytesTest, NestedScalesAreAProductAndASum) {
  FakeParts parts = Example();
  parts.Add<uint8_t>("m.weight.absmax", "U8", {1}, {200});
  std::vector<float> map(256);
  map[200] = 0.23359375F;
  parts.Add<float>("m.weight.nested_quant_map", "F32", {256}, map);
  parts.Add<float>("m.weight.nested_absmax", "F32", {1}, {0.05F});
  const std::vector<uint8_t> state =
      BytesOf(R"({"quant_type":"nf4","blocksize":64,"shape":[2,4],"nested_offset":0.06})");
  parts.Add<uint8_t>(kState, "U8", {static_cast<int64_t>(state.size())}, state);
  const std::vector<float> values = ValuesOf(parts.Read(BitsAndBytesMethod(*ConfigOf("{}"))));
  ASSERT_EQ(values.size(), 8u);
  EXPECT_FLOAT_EQ(values[3], 0.07167969F);
}

TEST(BitsAndBytesTest, AnOddMatrixSharesBlocksBetweenRows) {
  // Blocks of 4 over rows of 6: the second block ends the first row and begins the second.
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "U8", {6, 1}, std::vector<uint8_t>(6, 0xff));
  parts.Add<float>("m.weight.absmax", "F32", {3}, {1, 2, 3});
  parts.Add<float>("m.weight.quant_map", "F32", {16}, kNf4);
  const std::vector<uint8_t> state = BytesOf(R"({"quant_type":"nf4","blocksize":4,"shape":[2,6]})");
  parts.Add<uint8_t>(kState, "U8", {static_cast<int64_t>(state.size())}, state);
  EXPECT_THAT(ValuesOf(parts.Read(BitsAndBytesMethod(*ConfigOf("{}")))),
              ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3));
}

TEST(BitsAndBytesTest, EightBitsMultiplyByTheReciprocalOf127) {
  FakeParts parts;
  parts.Add<int8_t>("m.weight", "I8", {1, 4}, {50, -127, 1, 90});
  parts.Add<float>("m.SCB", "F32", {1}, {1.27F});
  const auto config = ConfigOf("{}");
  EXPECT_THAT(ValuesOf(parts.Read(BitsAndBytesMethod(*config))),
              ElementsAre(0.5F, -1.27F, 0.01F, 0.9F));
  parts.Add<uint8_t>("m.weight_format", "U8", {}, {1});
  EXPECT_THAT(parts.ErrorOf(BitsAndBytesMethod(*config)), HasSubstr("m.weight_format is 1"));
  parts.Remove("m.SCB");
  EXPECT_THAT(parts.ErrorOf(BitsAndBytesMethod(*config)), HasSubstr("m.SCB is missing"));
}

TEST(BitsAndBytesTest, WhatContradictsIsNamed) {
  const auto config = ConfigOf("{}");
  EXPECT_THAT(Example().ErrorOf(BitsAndBytesMethod(*config), MatrixExtents{4, 4}),
              HasSubstr("quant_state"));
  FakeParts parts = Example();
  parts.Remove("m.weight.absmax");
  EXPECT_THAT(parts.ErrorOf(BitsAndBytesMethod(*config)), HasSubstr("absmax is missing"));
  parts = Example();
  parts.Remove(kState);
  EXPECT_THAT(parts.ErrorOf(BitsAndBytesMethod(*config)), HasSubstr("quant_state"));
  parts = Example();
  parts.Add<uint8_t>("m.weight", "U8", {3, 1}, {1, 2, 3});
  EXPECT_THAT(parts.ErrorOf(BitsAndBytesMethod(*config)), HasSubstr("m.weight has 3 bytes"));
  for (const char* state : {"{}", "7", R"({"quant_type":"nf4","blocksize":0,"shape":[2,4]})",
                            R"({"quant_type":"nf4","blocksize":64,"shape":[8]})",
                            R"({"quant_type":"nf4","blocksize":64,)"
                            R"("shape":[4611686018427387904,4611686018427387904]})"}) {
    const std::vector<uint8_t> bytes = BytesOf(state);
    parts.Add<uint8_t>(kState, "U8", {static_cast<int64_t>(bytes.size())}, bytes);
    EXPECT_FALSE(parts.Read(BitsAndBytesMethod(*config)).ok()) << state;
  }
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/weights/quantized/gptq.h"

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

constexpr char kFourBits[] = R"({"bits":4,"group_size":8,"checkpoint_format":"gptq"})";

// The worked example of the format's description: 8 inputs, 8 outputs, one group.
FakeParts Example() {
  FakeParts parts;
  parts.Add<uint32_t>("m.qweight", "I32", {1, 8},
                      {0x76543210, 0x98765432, 0xba987654, 0xdcba9876, 0xfedcba98, 0x10fedcba,
                       0x3210fedc, 0x543210fe});
  parts.Add<uint32_t>("m.qzeros", "I32", {1, 1}, {0xe8567777});
  // 0.5, 0.25, 1, 2, 0.125, 0.5, 1, 0.5 in half precision.
  parts.Add<uint16_t>("m.scales", "F16", {1, 8},
                      {0x3800, 0x3400, 0x3c00, 0x4000, 0x3000, 0x3800, 0x3c00, 0x3800});
  return parts;
}

std::vector<float> RowOf(const std::vector<float>& values, int row) {
  return {values.begin() + row * 8, values.begin() + (row + 1) * 8};
}

TEST(GptqTest, ReadsTheWorkedExampleInBothFormats) {
  FakeParts parts = Example();
  for (const bool is_second : {false, true}) {
    if (is_second) {
      parts.Add<uint32_t>("m.qzeros", "I32", {1, 1}, {0xf9678888});
    }
    const auto config =
        ConfigOf(is_second ? R"({"bits":4,"checkpoint_format":"gptq_v2"})" : kFourBits);
    const std::vector<float> values = ValuesOf(parts.Read(GptqMethod(*config)));
    ASSERT_EQ(values.size(), 64u);
    EXPECT_THAT(RowOf(values, 0), ElementsAre(-4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5));
    EXPECT_THAT(RowOf(values, 5), ElementsAre(2, 2.5, 3, 3.5, 4, 4.5, -3, -2.5));
    EXPECT_THAT(RowOf(values, 7), ElementsAre(-0.5, 0, -7.5, -7, -6.5, -6, -5.5, -5));
  }
}

TEST(GptqTest, ZeroPointsOfTheFirstFormatCarryIntoTheirNeighbours) {
  // Stored by whole words: zero points 0, 8, ... less 0x11111111 borrow from the next one.
  FakeParts parts = Example();
  parts.Add<uint32_t>("m.qzeros", "I32", {1, 1}, {0x88888880U - 0x11111111U});
  const auto config = ConfigOf(kFourBits);
  const std::vector<float> values = ValuesOf(parts.Read(GptqMethod(*config)));
  EXPECT_EQ(values[0], 0.0F);  // code 0, zero point 0
  EXPECT_EQ(values[1], 0.5F);  // code 1
  EXPECT_EQ(values[8], (2 - 8) * 0.25F);
}

TEST(GptqTest, ThreeBitsAreOneStream) {
  // 32 inputs, 32 outputs: codes (5 j + 3) mod 8 in the first output, zero points 4.
  FakeParts parts;
  std::vector<uint32_t> codes(3 * 32);
  codes[0] = 0x43c67543;
  codes[32] = 0x7543c675;
  codes[64] = 0xc67543c6;
  parts.Add<uint32_t>("m.qweight", "I32", {3, 32}, codes);
  // Thirty-two threes (4 - 1): the bits 011 over and over.
  parts.Add<uint32_t>("m.qzeros", "I32", {1, 3}, {0xdb6db6db, 0xb6db6db6, 0x6db6db6d});
  parts.Add<uint16_t>("m.scales", "F16", {1, 32}, std::vector<uint16_t>(32, 0x3c00));
  const auto config = ConfigOf(R"({"bits":3,"group_size":-1})");
  const std::vector<float> values = ValuesOf(parts.Read(GptqMethod(*config)));
  ASSERT_EQ(values.size(), 1024u);
  for (int j = 0; j < 32; ++j) {
    EXPECT_EQ(values[static_cast<size_t>(j)], static_cast<float>((5 * j + 3) % 8 - 4)) << j;
  }
}

TEST(GptqTest, TwoAndEightBitsFillTheirWords) {
  FakeParts two;
  two.Add<uint32_t>("m.qweight", "I32", {1, 16}, std::vector<uint32_t>(16, 0xe4e4e4e4));
  two.Add<uint32_t>("m.qzeros", "I32", {1, 1}, {0x55555555});  // zero points 2
  two.Add<uint16_t>("m.scales", "F16", {1, 16}, std::vector<uint16_t>(16, 0x3c00));
  const std::vector<float> pairs = ValuesOf(two.Read(GptqMethod(*ConfigOf(R"({"bits":2})"))));
  EXPECT_THAT(std::vector<float>(pairs.begin(), pairs.begin() + 5), ElementsAre(-2, -1, 0, 1, -2));
  FakeParts eight;
  eight.Add<uint32_t>("m.qweight", "I32", {1, 4}, std::vector<uint32_t>(4, 0x10ff8001));
  eight.Add<uint32_t>("m.qzeros", "I32", {1, 1}, {0x7f7f7f7f});  // 128
  eight.Add<uint16_t>("m.scales", "F16", {1, 4}, std::vector<uint16_t>(4, 0x3c00));
  const std::vector<float> bytes = ValuesOf(eight.Read(GptqMethod(*ConfigOf(R"({"bits":8})"))));
  EXPECT_THAT(std::vector<float>(bytes.begin(), bytes.begin() + 4),
              ElementsAre(-127, 0, 127, -112));
}

TEST(GptqTest, ActOrderTakesEachInputsOwnGroup) {
  FakeParts parts = Example();
  const std::vector<uint16_t> halves(8, 0x3800);
  std::vector<uint16_t> scales(8, 0x3c00);
  scales.insert(scales.end(), halves.begin(), halves.end());
  parts.Add<uint16_t>("m.scales", "F16", {2, 8}, scales);
  parts.Add<uint32_t>("m.qzeros", "I32", {2, 1}, {0x77777777, 0x77777777});
  parts.Add<int32_t>("m.g_idx", "I32", {8}, {1, 0, 1, 0, 0, 1, 0, 1});
  const auto config = ConfigOf(R"({"bits":4,"group_size":4,"desc_act":true})");
  const std::vector<float> values = ValuesOf(parts.Read(GptqMethod(*config)));
  EXPECT_THAT(RowOf(values, 0), ElementsAre(-4, -7, -3, -5, -4, -1.5, -2, -0.5));
  for (const int32_t bad : {2, -1}) {
    parts.Add<int32_t>("m.g_idx", "I32", {8}, {1, 0, 1, bad, 0, 1, 0, 1});
    const std::string error = parts.ErrorOf(GptqMethod(*config));
    EXPECT_THAT(error, HasSubstr("m.g_idx"));
    EXPECT_THAT(error, HasSubstr("group " + std::to_string(bad)));
  }
  parts.Remove("m.g_idx");
  EXPECT_THAT(parts.ErrorOf(GptqMethod(*config)), HasSubstr("m.g_idx is missing"));
  parts.Add<int32_t>("m.g_idx", "I32", {8}, {1, 1, 1, 1, 1, 0, 0, 0});
  EXPECT_THAT(parts.ErrorOf(GptqMethod(*config)), HasSubstr("group_size of 4"));
}

TEST(GptqTest, SettingsOfOneModuleComeFirst) {
  FakeParts parts = Example();
  const auto config = ConfigOf(
      R"({"bits":8,"group_size":4,"dynamic":{"-:z.*":{},"+:^m$":{"bits":4,"group_size":8}}})");
  EXPECT_EQ(ValuesOf(parts.Read(GptqMethod(*config)))[0], -4);
}

// As GPTQModel takes them: the first rule of the file that matches, whatever its name.
TEST(GptqTest, OfRulesThatOverlapTheFirstOfTheFileHolds) {
  FakeParts parts = Example();
  const auto value_of = [&](const std::string& rules) {
    return ValuesOf(parts.Read(
        GptqMethod(*ConfigOf(R"({"bits":8,"group_size":4,"dynamic":{)" + rules + "}}"))))[0];
  };
  const std::string right = R"({"bits":4,"group_size":8})";
  const std::string wrong = R"({"bits":8,"group_size":8})";
  EXPECT_EQ(value_of(R"("+:m":)" + right + R"(,"+:.*":)" + wrong), -4);
  EXPECT_EQ(value_of(R"("+:.*":)" + right + R"(,"+:m":)" + wrong), -4);
  EXPECT_EQ(value_of(R"("m":)" + right + R"(,"+:m":)" + wrong), -4);
  EXPECT_THAT(parts.ErrorOf(GptqMethod(
                  *ConfigOf(R"({"bits":4,"group_size":8,"dynamic":{"m":)" + wrong + "}}"))),
              HasSubstr("m."));
}

TEST(GptqTest, WhatContradictsIsNamed) {
  const auto config = ConfigOf(kFourBits);
  FakeParts parts = Example();
  EXPECT_THAT(parts.ErrorOf(GptqMethod(*config), MatrixExtents{8, 16}), HasSubstr("m.qweight"));
  EXPECT_THAT(parts.ErrorOf(GptqMethod(*ConfigOf(R"({"bits":4,"group_size":3})"))),
              HasSubstr("group_size of 3"));
  parts.Add<uint16_t>("m.weight", "F16", {8, 8}, std::vector<uint16_t>(64));
  EXPECT_THAT(parts.ErrorOf(GptqMethod(*config)), HasSubstr("m.weight"));
  parts = Example();
  parts.Remove("m.scales");
  EXPECT_THAT(parts.ErrorOf(GptqMethod(*config)), HasSubstr("m.scales is missing"));
  parts = Example();
  parts.Add<int64_t>("m.qweight", "I64", {1, 8}, std::vector<int64_t>(8));
  EXPECT_THAT(parts.ErrorOf(GptqMethod(*config)), HasSubstr("I64"));
  parts = Example();
  std::vector<uint16_t> scales(8, 0x3c00);
  scales[5] = 0x7e00;
  parts.Add<uint16_t>("m.scales", "F16", {1, 8}, scales);
  EXPECT_THAT(std::string(DecodeStatus(parts.Read(GptqMethod(*config))).message()),
              HasSubstr("m.scales holds nan at element 5"));
}

TEST(GptqTest, OtherLayoutsAreRefusedByTheirSetting) {
  for (const auto& [json, word] : std::vector<std::pair<std::string, std::string>>{
           {R"({"bits":5})", "key bits is 5"},
           {R"({"bits":4,"checkpoint_format":"gptq_p"})", "gptq_p"},
           {R"({"bits":4,"format":"marlin"})", "marlin"},
           {R"({"bits":4,"group_size":0})", "key group_size is 0"},
           {R"({"bits":4,"pack_dtype":"int16"})", "int16"},
           {R"({"bits":4,"dynamic":{"+:(":{}}})", "dynamic"}}) {
    EXPECT_THAT(std::string(GptqMethod(*ConfigOf(json)).status().message()), HasSubstr(word));
  }
}

TEST(GptqTest, APlainModuleIsNone) {
  FakeParts parts;
  parts.Add<float>("m.weight", "F32", {1, 1}, {1});
  EXPECT_EQ(parts.Read(GptqMethod(*ConfigOf(kFourBits))).value(), nullptr);
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/weights/quantized/compressed_tensors.h"

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

std::string Config(const std::string& format, const std::string& weights) {
  return R"({"format":")" + format + R"(","config_groups":{"group_0":{"targets":["Linear"],)" +
         R"("weights":{)" + weights + "}}}}";
}

absl::StatusOr<std::unique_ptr<Method>> MethodFor(const std::string& format,
                                                  const std::string& weights) {
  return CompressedTensorsMethod(*ConfigOf(Config(format, weights)));
}

constexpr char kAsymmetric[] =
    R"("num_bits":4,"type":"int","symmetric":false,"strategy":"channel")";

// Eight rows of the same ten codes, with zero points -2 to 5.
FakeParts Packed() {
  FakeParts parts;
  std::vector<uint32_t> words;
  for (int row = 0; row < 8; ++row) {
    words.insert(words.end(), {0x5fd98710, 0x000000ba});
  }
  parts.Add<uint32_t>("m.weight_packed", "I32", {8, 2}, words);
  parts.Add<int64_t>("m.weight_shape", "I64", {2}, {8, 10});
  parts.Add<uint16_t>("m.weight_scale", "BF16", {8, 1}, std::vector<uint16_t>(8, 0x3f00));
  parts.Add<uint32_t>("m.weight_zero_point", "I32", {1, 1}, {0xdcba9876});
  return parts;
}

TEST(CompressedTensorsTest, ReadsPackedIntegersWithZeroPoints) {
  const std::vector<float> values =
      ValuesOf(Packed().Read(MethodFor("pack-quantized", kAsymmetric)));
  ASSERT_EQ(values.size(), 80u);
  // -8, -7, -1, 0, 1, 5, 7, -3, 2, 3 with scale 0.5: zero point -2 in row 0 and 1 in row 3.
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 10),
              ElementsAre(-3, -2.5, 0.5, 1, 1.5, 3.5, 4.5, -0.5, 2, 2.5));
  EXPECT_THAT(std::vector<float>(values.begin() + 30, values.begin() + 38),
              ElementsAre(-4.5, -4, -1, -0.5, 0, 2, 3, -2));
}

TEST(CompressedTensorsTest, WordsOfOddWidthsAreAStreamOrPadded) {
  constexpr char kThreeBits[] = R"("num_bits":3,"type":"int","strategy":"channel")";
  FakeParts parts;
  parts.Add<int64_t>("m.weight_shape", "I64", {2}, {1, 12});
  parts.Add<uint16_t>("m.weight_scale", "BF16", {1, 1}, {0x3f80});
  parts.Add<uint32_t>("m.weight_packed", "I32", {1, 2}, {0x88fac688, 0x00000006});
  EXPECT_THAT(ValuesOf(parts.Read(MethodFor("pack-quantized", kThreeBits))),
              ElementsAre(-4, -3, -2, -1, 0, 1, 2, 3, -4, -3, -2, -1));
  // 64 codes are 6 words as a stream, 7 of ten codes each.
  FakeParts padded;
  padded.Add<int64_t>("m.weight_shape", "I64", {2}, {1, 64});
  padded.Add<uint16_t>("m.weight_scale", "BF16", {1, 1}, {0x3f80});
  padded.Add<uint32_t>("m.weight_packed", "I32", {1, 7}, {1, 2, 3, 4, 5, 6, 7});
  const std::vector<float> values = ValuesOf(padded.Read(MethodFor("pack-quantized", kThreeBits)));
  ASSERT_EQ(values.size(), 64u);
  for (size_t word = 0; word < 7; ++word) {
    EXPECT_EQ(values[word * 10], static_cast<float>(word + 1) - 4) << word;
    EXPECT_EQ(values[word * 10 + 1], -4) << word;
  }
}

TEST(CompressedTensorsTest, ReadsBytesOfEightBits) {
  FakeParts parts;
  parts.Add<int8_t>("m.weight", "I8", {2, 2}, {-128, 127, 3, 4});
  parts.Add<uint16_t>("m.weight_scale", "BF16", {2, 1}, {0x3f80, 0x4000});
  constexpr char kBytes[] = R"("num_bits":8,"type":"int","strategy":"channel")";
  EXPECT_THAT(ValuesOf(parts.Read(MethodFor("int-quantized", kBytes))),
              ElementsAre(-128, 127, 6, 8));
  constexpr char kShifted[] = R"("num_bits":8,"type":"int","strategy":"channel","symmetric":false)";
  parts.Add<int8_t>("m.weight_zero_point", "I8", {2, 1}, {1, -1});
  EXPECT_THAT(ValuesOf(parts.Read(MethodFor("int-quantized", kShifted))),
              ElementsAre(-129, 126, 8, 10));
}

TEST(CompressedTensorsTest, Nvfp4DividesByTheTensorsScale) {
  FakeParts parts;
  parts.Add<uint8_t>("m.weight_packed", "U8", {1, 8},
                     {0xd7, 0x31, 0x4e, 0x02, 0x90, 0x64, 0xf6, 0x22});
  parts.Add<uint8_t>("m.weight_scale", "F8_E4M3", {1, 1}, {0x70});
  parts.Add<float>("m.weight_global_scale", "F32", {1}, {256});
  constexpr char kNvfp4[] =
      R"("num_bits":4,"type":"float","strategy":"tensor_group","group_size":16)";
  EXPECT_EQ(ValuesOf(parts.Read(MethodFor("nvfp4-pack-quantized", kNvfp4)))[0], 3);
  parts.Add<float>("m.weight_global_scale", "F32", {1}, {0});
  EXPECT_THAT(parts.ErrorOf(MethodFor("nvfp4-pack-quantized", kNvfp4)),
              HasSubstr("m.weight_global_scale is 0"));
}

TEST(CompressedTensorsTest, ANameOrPatternComesBeforeTheClass) {
  const auto config =
      ConfigOf(R"({"format":"mixed-precision","config_groups":{)"
               R"("a":{"format":"pack-quantized","targets":["Linear"],"weights":{"num_bits":4}},)"
               R"("b":{"format":"int-quantized","targets":["re:m$"],)"
               R"("weights":{"num_bits":8,"strategy":"tensor"}}}})");
  FakeParts parts;
  parts.Add<int8_t>("m.weight", "I8", {1, 1}, {3});
  parts.Add<uint16_t>("m.weight_scale", "BF16", {1}, {0x3f80});
  EXPECT_THAT(ValuesOf(parts.Read(CompressedTensorsMethod(*config))), ElementsAre(3));
}

TEST(CompressedTensorsTest, WhatContradictsIsNamed) {
  FakeParts parts = Packed();
  parts.Remove("m.weight_zero_point");
  EXPECT_THAT(parts.ErrorOf(MethodFor("pack-quantized", kAsymmetric)),
              HasSubstr("m.weight_zero_point is missing"));
  parts = Packed();
  parts.Add<int64_t>("m.weight_shape", "I64", {2}, {8, 40});
  EXPECT_THAT(parts.ErrorOf(MethodFor("pack-quantized", kAsymmetric), MatrixExtents{8, 10}),
              HasSubstr("m.weight_shape"));
  EXPECT_THAT(parts.ErrorOf(MethodFor("pack-quantized", kAsymmetric)),
              HasSubstr("m.weight_packed has 2 words for 40 codes"));
  parts.Add<int64_t>("m.weight_shape", "I64", {2}, {8, int64_t{1} << 62});
  EXPECT_THAT(parts.ErrorOf(MethodFor("pack-quantized", kAsymmetric)),
              HasSubstr("m.weight_shape says"));
  parts = Packed();
  parts.Add<uint16_t>("m.weight", "BF16", {8, 10}, std::vector<uint16_t>(80));
  EXPECT_THAT(parts.ErrorOf(MethodFor("pack-quantized", kAsymmetric)),
              HasSubstr("plain m.weight;"));
}

TEST(CompressedTensorsTest, OtherLayoutsAreRefusedByTheirSetting) {
  const auto error = [](const std::string& format, const std::string& weights) {
    return std::string(MethodFor(format, weights).status().message());
  };
  EXPECT_THAT(error("marlin-24", R"("num_bits":4)"), HasSubstr("marlin-24"));
  EXPECT_THAT(error("pack-quantized", R"("num_bits":9)"), HasSubstr("num_bits is 9"));
  EXPECT_THAT(error("pack-quantized", R"("num_bits":8,"type":"float")"), HasSubstr("format"));
  EXPECT_THAT(error("pack-quantized", R"("num_bits":4,"strategy":"x")"), HasSubstr("strategy"));
  EXPECT_FALSE(CompressedTensorsMethod(*ConfigOf("{}")).ok());
  EXPECT_THAT(std::string(CompressedTensorsMethod(
                              *ConfigOf(R"({"sparsity_config":{"format":"sparse-24"}})"))
                              .status()
                              .message()),
              HasSubstr("sparse-24"));
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/weights/quantized/fp8.h"

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

FakeParts Example() {
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "F8_E4M3", {2, 3}, {0x38, 0x3d, 0xb8, 0x40, 0x01, 0x7e});
  parts.Add<float>("m.weight_scale_inv", "F32", {1, 2}, {0.5F, 2});
  return parts;
}

TEST(Fp8Test, BlocksAtTheEdgesArePartial) {
  const auto config = ConfigOf(R"({"weight_block_size":[2,2]})");
  EXPECT_THAT(ValuesOf(Example().Read(Fp8Method(*config))),
              ElementsAre(0.5, 0.8125, -2, 1, 0.0009765625, 896));
}

TEST(Fp8Test, OneScaleMayHaveAnyExtentsAndEitherName) {
  FakeParts parts = Example();
  parts.Remove("m.weight_scale_inv");
  for (const std::vector<int64_t>& extents :
       {std::vector<int64_t>{}, std::vector<int64_t>{1}, std::vector<int64_t>{1, 1}}) {
    parts.Add<float>("m.weight_scale", "F32", extents, {0.02F});
    EXPECT_EQ(ValuesOf(parts.Read(Fp8Method(*ConfigOf("{}"))))[1], 1.625F * 0.02F);
  }
}

TEST(Fp8Test, ExponentsAreScalesWhereTheSettingSaysSo) {
  FakeParts parts = Example();
  parts.Add<uint8_t>("m.weight_scale_inv", "U8", {1, 2}, {126, 129});
  const auto config = ConfigOf(R"({"weight_block_size":[2,2],"scale_fmt":"ue8m0"})");
  EXPECT_THAT(ValuesOf(parts.Read(Fp8Method(*config))),
              ElementsAre(0.5, 0.8125, -4, 1, 0.0009765625, 1792));
  EXPECT_THAT(parts.ErrorOf(Fp8Method(*ConfigOf(R"({"weight_block_size":[2,2]})"))),
              HasSubstr("m.weight_scale_inv has type U8"));
}

TEST(Fp8Test, AnInverseDivides) {
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "F8_E5M2", {2, 2}, {0x3c, 0x40, 0x3d, 0xbc});
  parts.Add<float>("m.weight_scale_inv", "F32", {2}, {3, 10});
  const auto config =
      ConfigOf(R"({"weight_scale_semantics":"inverse","weight_scale_method":"row"})");
  EXPECT_THAT(ValuesOf(parts.Read(Fp8Method(*config))),
              ElementsAre(1.0F / 3, 2.0F / 3, 1.25F / 10, -1.0F / 10));
}

TEST(Fp8Test, WhatIsMissingOrNoNumberIsNamed) {
  const auto config = ConfigOf(R"({"weight_block_size":[2,2]})");
  FakeParts parts = Example();
  parts.Remove("m.weight_scale_inv");
  EXPECT_THAT(parts.ErrorOf(Fp8Method(*config)), HasSubstr("m.weight_scale_inv is missing"));
  parts = Example();
  parts.Add<float>("m.weight_scale_inv", "F32", {1, 1}, {1});
  EXPECT_THAT(parts.ErrorOf(Fp8Method(*config)), HasSubstr("wanted [1, 2]"));
  parts = Example();
  parts.Add<uint8_t>("m.weight", "F8_E4M3", {2, 3}, {0x38, 0x3d, 0xb8, 0x40, 0x7f, 0x7e});
  EXPECT_THAT(std::string(DecodeStatus(parts.Read(Fp8Method(*config))).message()),
              HasSubstr("m.weight holds the code 0x7F"));
}

TEST(Fp8Test, OtherLayoutsAreRefusedByTheirSetting) {
  for (const char* json :
       {R"({"weight_block_size":[2]})", R"({"weight_block_size":[0,2]})", R"({"scale_fmt":"x"})",
        R"({"weight_scale_method":"block"})", R"({"weight_scale_semantics":"x"})",
        R"({"fmt":"e3m4"})", R"({"format":"float8_e4m3fnuz"})"}) {
    EXPECT_FALSE(Fp8Method(*ConfigOf(json)).ok()) << json;
  }
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/weights/quantized/modelopt.h"

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

// The worked block: codes 7, 13, 1, 3, ... with block scale 128 and tensor scale 2^-8.
TEST(ModelOptTest, ReadsTheWorkedBlock) {
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "U8", {1, 8}, {0xd7, 0x31, 0x4e, 0x02, 0x90, 0x64, 0xf6, 0x22});
  parts.Add<uint8_t>("m.weight_scale", "F8_E4M3", {1, 1}, {0x70});
  parts.Add<float>("m.weight_scale_2", "F32", {}, {0.00390625F});
  const auto config = ConfigOf(R"({"quant_algo":"NVFP4"})");
  EXPECT_THAT(ValuesOf(parts.Read(ModelOptMethod(*config))),
              ElementsAre(3, -1.5, .25, .75, -2, 1, .5, 0, 0, -.25, 1, 2, 2, -3, .5, .5));
  parts.Remove("m.weight_scale_2");
  EXPECT_THAT(parts.ErrorOf(ModelOptMethod(*config)), HasSubstr("m.weight_scale_2 is missing"));
}

TEST(ModelOptTest, TwoScalesMultiplyBeforeTheNumber) {
  // 1.5 * (0.015625 * 0.3) in two roundings.
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "U8", {1, 8}, std::vector<uint8_t>(8, 0x33));
  parts.Add<uint8_t>("m.weight_scale", "F8_E4M3", {1, 1}, {0x09});
  parts.Add<float>("m.weight_scale_2", "F32", {}, {0.3F});
  const volatile float scale = 0.017578125F * 0.3F;
  EXPECT_EQ(ValuesOf(parts.Read(ModelOptMethod(*ConfigOf(R"({"quant_algo":"NVFP4"})"))))[0],
            1.5F * scale);
}

TEST(ModelOptTest, Fp8HasOneScale) {
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "F8_E4M3", {1, 2}, {0x38, 0xb8});
  parts.Add<float>("m.weight_scale", "F32", {}, {0.5F});
  const auto config = ConfigOf(R"({"quant_algo":"FP8"})");
  EXPECT_THAT(ValuesOf(parts.Read(ModelOptMethod(*config))), ElementsAre(0.5, -0.5));
  parts.Add<float>("m.weight_scale", "F32", {2}, {1, 1});
  EXPECT_THAT(parts.ErrorOf(ModelOptMethod(*config)), HasSubstr("m.weight_scale"));
}

TEST(ModelOptTest, OtherAlgorithmsAreNamed) {
  EXPECT_THAT(
      std::string(ModelOptMethod(*ConfigOf(R"({"quant_algo":"W4A8_AWQ"})")).status().message()),
      HasSubstr("W4A8_AWQ"));
}

}  // namespace
}  // namespace trireme::weights

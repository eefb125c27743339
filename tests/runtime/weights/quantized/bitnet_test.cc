#include "runtime/weights/quantized/bitnet.h"

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

// The worked example: 8 outputs, 3 inputs, two rows of bytes.
FakeParts Example() {
  FakeParts parts;
  parts.Add<uint8_t>("m.weight", "U8", {2, 3}, {0x12, 0x81, 0x64, 0x69, 0x5a, 0x92});
  parts.Add<float>("m.weight_scale", "F32", {1}, {4});
  return parts;
}

TEST(BitNetTest, ReadsTheWorkedExample) {
  const auto config = ConfigOf(R"({"linear_class":"autobitlinear"})");
  EXPECT_THAT(
      ValuesOf(Example().Read(BitNetMethod(*config))),
      ElementsAre(4, 0, -4, 0, 4, 4, -4, -4, 0, 4, 4, -4, 0, -4, 4, 4, 0, 0, -4, 4, 0, 0, 0, 4));
  EXPECT_EQ(ValuesOf(Example().Read(BitNetMethod(*ConfigOf("{}"))))[0], 0.25F);
}

TEST(BitNetTest, WhatIsMissingOrNoNumberIsNamed) {
  const auto config = ConfigOf("{}");
  FakeParts parts = Example();
  parts.Remove("m.weight_scale");
  EXPECT_THAT(parts.ErrorOf(BitNetMethod(*config)), HasSubstr("m.weight_scale is missing"));
  parts.Add<float>("m.weight_scale", "F32", {1}, {0});
  EXPECT_THAT(parts.ErrorOf(BitNetMethod(*config)), HasSubstr("m.weight_scale is 0"));
  parts = Example();
  parts.Add<uint8_t>("m.weight", "U8", {2, 3}, {0xff, 0x81, 0x64, 0x69, 0x5a, 0x92});
  EXPECT_THAT(std::string(DecodeStatus(parts.Read(BitNetMethod(*config))).message()),
              HasSubstr("m.weight holds the code 0x03"));
}

TEST(BitNetTest, OtherLayoutsAreRefusedByTheirSetting) {
  for (const char* json : {R"({"linear_class":"x"})", R"({"quantization_mode":"online"})",
                           R"({"use_rms_norm":true})"}) {
    EXPECT_FALSE(BitNetMethod(*ConfigOf(json)).ok()) << json;
  }
}

}  // namespace
}  // namespace trireme::weights

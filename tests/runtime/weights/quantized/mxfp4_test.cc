#include "runtime/weights/quantized/mxfp4.h"

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
  parts.Add<uint8_t>("m_blocks", "U8", {1, 1, 1, 16},
                     {0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f, 0x10, 0x32, 0x54, 0x76, 0x98,
                      0xba, 0xdc, 0xfe});
  parts.Add<uint8_t>("m_scales", "U8", {1, 1, 1}, {126});
  return parts;
}

TEST(Mxfp4Test, ReadsTheWorkedBlock) {
  EXPECT_THAT(
      ValuesOf(Example().Read(Mxfp4Method(*ConfigOf("{}")))),
      ElementsAre(0.25, 0.5, 0.75, 1, 1.5, 2, 3, 0, -0.25, -0.5, -0.75, -1, -1.5, -2, -3, 0, 0,
                  0.25, 0.5, 0.75, 1, 1.5, 2, 3, 0, -0.25, -0.5, -0.75, -1, -1.5, -2, -3));
}

TEST(Mxfp4Test, ScalesOfAnotherShapeOrNoNumberAreNamed) {
  const auto config = ConfigOf("{}");
  FakeParts parts = Example();
  parts.Add<uint8_t>("m_scales", "U8", {1, 1, 1}, {255});
  EXPECT_THAT(std::string(DecodeStatus(parts.Read(Mxfp4Method(*config))).message()),
              HasSubstr("m_scales holds nan"));
  parts.Add<uint8_t>("m_scales", "U8", {1, 1, 2}, {1, 1});
  EXPECT_THAT(parts.ErrorOf(Mxfp4Method(*config)), HasSubstr("m_scales has the shape"));
  parts.Add<uint8_t>("m_blocks", "U8", {1, 16}, std::vector<uint8_t>(16));
  EXPECT_THAT(parts.ErrorOf(Mxfp4Method(*config)), HasSubstr("m_blocks"));
}

}  // namespace
}  // namespace trireme::weights

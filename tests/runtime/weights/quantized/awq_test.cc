#include "runtime/weights/quantized/awq.h"

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

FakeParts Example(uint32_t codes) {
  FakeParts parts;
  parts.Add<uint32_t>("m.qweight", "I32", {1, 1}, {codes});
  parts.Add<uint32_t>("m.qzeros", "I32", {1, 1}, {0});
  parts.Add<uint16_t>("m.scales", "F16", {1, 8}, std::vector<uint16_t>(8, 0x3c00));
  return parts;
}

TEST(AwqTest, ReadsTheInterleavedNibbles) {
  const auto config = ConfigOf(R"({"bits":4,"group_size":-1,"version":"GEMM"})");
  EXPECT_THAT(ValuesOf(Example(0x75316420).Read(AwqMethod(*config))),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  FakeParts parts = Example(0x6D5F1A07);
  EXPECT_THAT(ValuesOf(parts.Read(AwqMethod(*config))), ElementsAre(7, 15, 0, 5, 10, 13, 1, 6));
  parts.Add<uint32_t>("m.qzeros", "I32", {1, 1}, {0x75316420});
  EXPECT_THAT(ValuesOf(parts.Read(AwqMethod(*config))), ElementsAre(7, 14, -2, 2, 6, 8, -5, -1));
}

TEST(AwqTest, OtherLayoutsAreRefusedByTheirSetting) {
  for (const auto& [json, word] : std::vector<std::pair<std::string, std::string>>{
           {R"({"version":"gemv"})", "gemv"},
           {R"({"w_bit":3})", "key w_bit is 3"},
           {R"({"zero_point":false})", "zero_point"},
           {R"({"q_group_size":-2})", "key q_group_size is -2"}}) {
    const std::string error(AwqMethod(*ConfigOf(json)).status().message());
    EXPECT_THAT(error, HasSubstr(word));
  }
}

TEST(AwqTest, APartOfAnotherShapeIsNamed) {
  const auto config = ConfigOf(R"({"bits":4,"group_size":-1})");
  FakeParts parts = Example(0);
  parts.Add<uint32_t>("m.qzeros", "I32", {2, 1}, {0, 0});
  EXPECT_THAT(parts.ErrorOf(AwqMethod(*config)), HasSubstr("m.qzeros has the shape [2, 1]"));
  EXPECT_THAT(Example(0).ErrorOf(AwqMethod(*config), MatrixExtents{16, 1}), HasSubstr("m.qweight"));
}

}  // namespace
}  // namespace trireme::weights

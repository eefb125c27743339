#include "runtime/weights/ggml_type.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::weights {
namespace {

// types.gguf has one tensor of every type but Q8_1 and Q8_K (activations, which no file holds),
// with the byte counts of another program.
TEST(GgmlTypeTest, KnowsEveryTypeWithItsSize) {
  const nlohmann::json expected =
      nlohmann::json::parse(ReadFile(absl::StrCat(kGgufFixtures, "/good/expected.json")));
  std::set<uint32_t> seen;
  for (const nlohmann::json& tensor : expected.at("types.gguf").at("tensors")) {
    const uint32_t id = tensor.at("type");
    const GgmlType* const type = FindGgmlType(id);
    ASSERT_NE(type, nullptr) << id;
    int64_t elements = 1;
    for (const int64_t dimension : tensor.at("dims")) {
      elements *= dimension;
    }
    EXPECT_EQ(elements / type->block_values * type->block_bytes, tensor.at("bytes")) << type->name;
    seen.insert(id);
  }
  EXPECT_EQ(seen.size() + 2, AllGgmlTypes().size());
  // Q8_1: 32 values, scale and sum as halves. Q8_K: 256 values, a float and 16 sums of 16 bits.
  EXPECT_EQ(FindGgmlType(9)->block_bytes, 32 + 2 + 2);
  EXPECT_EQ(FindGgmlType(15)->block_bytes, 256 + 4 + 16 * 2);
}

TEST(GgmlTypeTest, NamesTypesAsTheirFormatIsCalled) {
  EXPECT_STREQ(FindGgmlType(0)->name, "F32");
  EXPECT_STREQ(FindGgmlType(3)->name, "Q4_1");
  EXPECT_STREQ(FindGgmlType(14)->name, "Q6_K");
  EXPECT_STREQ(FindGgmlType(39)->name, "MXFP4");
}

TEST(GgmlTypeTest, RefusesIdsThatWereWithdrawnOrNeverGiven) {
  for (const uint32_t id : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 43U, 1000U, 0xffffffffU}) {
    EXPECT_EQ(FindGgmlType(id), nullptr) << id;
    EXPECT_FALSE(WeightFormatOf(id).has_value()) << id;
  }
}

TEST(GgmlTypeTest, EachWeightFormatHasExactlyOneType) {
  std::multiset<kernels::WeightFormat> formats;
  for (const GgmlType& type : AllGgmlTypes()) {
    if (const auto format = WeightFormatOf(type.id)) {
      formats.insert(*format);
    }
  }
  for (const kernels::WeightFormatInfo& format : kernels::kWeightFormats) {
    EXPECT_EQ(formats.count(format.format), format.is_in_files ? 1U : 0U) << format.name;
  }
  EXPECT_EQ(WeightFormatOf(12), kernels::WeightFormat::kQ4_K);
  EXPECT_EQ(WeightFormatOf(30), kernels::WeightFormat::kBF16);
}

TEST(GgmlTypeTest, ActivationFormatsAreNoWeightFormats) {
  EXPECT_FALSE(WeightFormatOf(9).has_value());   // Q8_1
  EXPECT_FALSE(WeightFormatOf(15).has_value());  // Q8_K
  EXPECT_FALSE(WeightFormatOf(26).has_value());  // I32
}

}  // namespace
}  // namespace trireme::weights

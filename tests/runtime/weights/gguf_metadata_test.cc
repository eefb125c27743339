#include "runtime/weights/gguf_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "runtime/weights/gguf.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GgufMetadataTest : public ::testing::Test {
 protected:
  const GgufMetadata& Read(const GgufBuilder& builder) {
    bytes_ = std::make_unique<ExactBytes>(builder.Build());
    absl::StatusOr<std::unique_ptr<GgufFile>> file = GgufFile::FromBytes("f.gguf", bytes_->span());
    EXPECT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    return file_->metadata();
  }

  std::unique_ptr<ExactBytes> bytes_;
  std::unique_ptr<GgufFile> file_;
};

template <typename Value>
std::string Message(const absl::StatusOr<Value>& result) {
  return std::string(result.status().message());
}

std::string Int32s(std::initializer_list<int32_t> numbers) {
  std::string bytes;
  for (const int32_t number : numbers) {
    bytes += Encoded(number);
  }
  return EncodedArray(5, numbers.size(), bytes);
}

TEST_F(GgufMetadataTest, KeepsFileOrderAndFindsEachKey) {
  const GgufMetadata& metadata = Read(GgufBuilder().Uint32("z", 1).Uint32("a", 2).Uint32("m", 3));
  ASSERT_EQ(metadata.entries().size(), 3U);
  EXPECT_EQ(metadata.entries()[0].key, "z");
  EXPECT_EQ(metadata.entries()[2].key, "m");
  EXPECT_EQ(*metadata.GetInteger("z"), 1);
  EXPECT_EQ(*metadata.GetInteger("a"), 2);
  EXPECT_EQ(*metadata.GetInteger("m"), 3);
  EXPECT_EQ(metadata.Find("b"), nullptr);
  EXPECT_FALSE(metadata.Has(""));
}

// The first key starts after the header of 24 bytes; it takes 8 + 1 + 4 + 4.
TEST_F(GgufMetadataTest, RefusesAKeyThatStandsTwice) {
  const ExactBytes bytes(GgufBuilder().Uint32("a", 1).Uint32("b", 2).Uint32("a", 3).Build());
  EXPECT_EQ(Message(GgufFile::FromBytes("f.gguf", bytes.span())),
            "f.gguf: metadata key a (at byte 58) is a duplicate: it stands at byte 24 too; wanted "
            "each key once");
}

TEST_F(GgufMetadataTest, AMissingKeyIsNotFoundOrTakesTheDefault) {
  const GgufMetadata& metadata = Read(GgufBuilder());
  EXPECT_EQ(metadata.GetInteger("llama.block_count").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(metadata.GetInteger("llama.block_count")),
              HasSubstr("f.gguf: metadata key llama.block_count is missing, wanted an integer"));
  EXPECT_EQ(*metadata.GetIntegerOr("k", 5), 5);
  EXPECT_EQ(*metadata.GetFloatOr("k", 0.5), 0.5);
  EXPECT_EQ(*metadata.GetBoolOr("k", true), true);
  EXPECT_EQ(*metadata.GetStringOr("k", "none"), "none");
}

TEST_F(GgufMetadataTest, ADefaultDoesNotHideAWrongType) {
  const GgufMetadata& metadata = Read(GgufBuilder().String("k", "32"));
  EXPECT_EQ(Message(metadata.GetIntegerOr("k", 5)),
            "f.gguf: metadata key k (at byte 24) is of type string, wanted an integer");
  EXPECT_FALSE(metadata.GetFloatOr("k", 1).ok());
  EXPECT_FALSE(metadata.GetBoolOr("k", true).ok());
  EXPECT_FALSE(Read(GgufBuilder().Uint32("k", 1)).GetStringOr("k", "x").ok());
}

TEST_F(GgufMetadataTest, IntegersKeepTheirRange) {
  const GgufMetadata& metadata = Read(GgufBuilder()
                                          .Entry("small", 5, Encoded<int32_t>(-1))
                                          .Entry("large", 10, Encoded(uint64_t{1} << 63)));
  EXPECT_EQ(*metadata.GetInteger("small"), -1);
  EXPECT_THAT(Message(metadata.GetInteger("small", {.min = 1, .max = 9})),
              HasSubstr("is -1, wanted 1 to 9"));
  EXPECT_THAT(Message(metadata.GetInteger("small", {.min = 0})), HasSubstr("wanted at least 0"));
  EXPECT_THAT(Message(metadata.GetInteger("large")),
              HasSubstr("is 9223372036854775808, too large"));
}

TEST_F(GgufMetadataTest, FloatsComeFromAnyNumberButMustBeFinite) {
  const GgufMetadata& metadata = Read(GgufBuilder()
                                          .Entry("f32", 6, Encoded(0.1F))
                                          .Entry("f64", 12, Encoded(0.1))
                                          .Entry("u32", 4, Encoded<uint32_t>(10000))
                                          .Entry("nan", 6, Encoded(std::nanf("")))
                                          .Entry("infinite", 12, Encoded(-HUGE_VAL)));
  EXPECT_EQ(*metadata.GetFloat("f32"), static_cast<double>(0.1F));
  EXPECT_EQ(*metadata.GetFloat("f64"), 0.1);
  EXPECT_EQ(*metadata.GetFloat("u32"), 10000.0);
  EXPECT_THAT(Message(metadata.GetFloat("nan")), HasSubstr("is nan, wanted a finite number"));
  EXPECT_THAT(Message(metadata.GetFloat("infinite")), HasSubstr("is -inf, wanted a finite"));
}

TEST_F(GgufMetadataTest, DecodesArrays) {
  const GgufMetadata& metadata =
      Read(GgufBuilder()
               .Entry("i", 9, Int32s({-1, 0, 2}))
               .Entry("f", 9, EncodedArray(6, 2, Encoded(0.5F) + Encoded(-2.0F)))
               .Entry("b", 9, EncodedArray(7, 2, std::string("\x01\x00", 2)))
               .Entry("s", 9, EncodedArray(8, 2, EncodedString("ab") + EncodedString("")))
               .Entry("e", 9, EncodedArray(4, 0, "")));
  EXPECT_THAT(*metadata.GetIntegerArray("i"), ElementsAre(-1, 0, 2));
  EXPECT_THAT(*metadata.GetFloatArray("f"), ElementsAre(0.5F, -2.0F));
  EXPECT_THAT(*metadata.GetFloatArray("i"), ElementsAre(-1.0F, 0.0F, 2.0F));
  EXPECT_THAT(*metadata.GetBoolArray("b"), ElementsAre(true, false));
  EXPECT_THAT(*metadata.GetStringArray("s"), ElementsAre("ab", ""));
  EXPECT_TRUE(metadata.GetStringArray("e")->empty());
}

TEST_F(GgufMetadataTest, ArraysOfAnotherTypeAreNamed) {
  const GgufMetadata& metadata = Read(GgufBuilder().Entry("i", 9, Int32s({1, 12})).Uint32("u", 3));
  EXPECT_THAT(Message(metadata.GetStringArray("i")),
              HasSubstr("is of type array of i32, wanted an array of strings"));
  EXPECT_THAT(Message(metadata.GetIntegerArray("u")),
              HasSubstr("is of type u32, wanted an array of integers"));
  EXPECT_THAT(Message(metadata.GetIntegerArray("i", {.min = 0, .max = 9})),
              HasSubstr("element 1 is 12, wanted 0 to 9"));
  EXPECT_FALSE(metadata.GetFloatArray("u").ok());
  EXPECT_FALSE(metadata.GetBoolArray("i").ok());
}

TEST_F(GgufMetadataTest, HugeArraysAreNotDecoded) {
  const std::string elements(static_cast<size_t>(kMaxDecodedElements + 1), 'x');
  const GgufMetadata& metadata =
      Read(GgufBuilder().Entry("k", 9, EncodedArray(0, elements.size(), elements)));
  EXPECT_THAT(Message(metadata.GetIntegerArray("k")), HasSubstr("too many"));
}

TEST_F(GgufMetadataTest, PerLayerNumbersComeFromOneNumberOrFromAnArray) {
  const GgufMetadata& metadata =
      Read(GgufBuilder().Uint32("one", 4).Entry("each", 9, Int32s({4, 2, 4})).String("text", "4"));
  EXPECT_THAT(*metadata.GetIntegerPerLayer("one", 3), ElementsAre(4, 4, 4));
  EXPECT_THAT(*metadata.GetIntegerPerLayer("each", 3), ElementsAre(4, 2, 4));
  EXPECT_THAT(Message(metadata.GetIntegerPerLayer("each", 4)),
              HasSubstr("has 3 elements, wanted 4, one for each layer"));
  EXPECT_THAT(Message(metadata.GetIntegerPerLayer("text", 4)), HasSubstr("is of type string"));
  EXPECT_THAT(Message(metadata.GetIntegerPerLayer("each", 3, {.min = 3})),
              HasSubstr("element 1 is 2, wanted at least 3"));
}

TEST_F(GgufMetadataTest, CallersErrorsNameFileKeyAndPlace) {
  const GgufMetadata& metadata = Read(GgufBuilder().Uint32("k", 5));
  EXPECT_EQ(std::string(metadata.Error("k", "is 5, wanted 4").message()),
            "f.gguf: metadata key k (at byte 24) is 5, wanted 4");
  EXPECT_THAT(std::string(metadata.Error("gone", "is needed").message()), HasSubstr("gone"));
}

}  // namespace
}  // namespace trireme::weights

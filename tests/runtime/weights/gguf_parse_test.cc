#include "runtime/weights/gguf_parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;

std::string ErrorOf(const std::string& file) {
  const ExactBytes bytes(file);
  const absl::StatusOr<GgufPart> part = ParseGguf("f.gguf", bytes.span());
  return part.ok() ? "no error" : std::string(part.status().message());
}

// The worked example of the format's description, byte for byte (416 bytes).
std::string WorkedExample() {
  std::string file = absl::HexStringToBytes(
      "47475546030000000200000000000000"
      "06000000000000001400000000000000"
      "67656e6572616c2e6172636869746563"
      "747572650800000005000000000000006c6c616d61"
      "11000000000000006c6c616d612e626c6f636b5f636f756e740400000001000000"
      "0300000000000000782e66060000000000003f"
      "0300000000000000782e620700000001"
      "0300000000000000782e6109000000080000000200000000000000"
      "02000000000000006162010000000000000063"
      "0300000000000000782e6909000000050000000300000000000000ffffffff0000000002000000"
      "010000000000000077020000002000000000000000020000000000000002000000"
      "0000000000000000"
      "01000000000000006201000000030000000000000000000000"
      "4000000000000000");
  file.resize(320, '\0');
  for (int i = 0; i < 0x24; ++i) {
    file.push_back(static_cast<char>(i));
  }
  file.resize(384, '\0');
  file += Encoded(1.0F) + Encoded(-2.0F) + Encoded(3.5F);
  file.resize(416, '\0');
  return file;
}

TEST(GgufParseTest, ReadsTheWorkedExample) {
  const ExactBytes bytes(WorkedExample());
  ASSERT_EQ(Crc32(bytes.span()), 0xed22f598U);
  const absl::StatusOr<GgufPart> part = ParseGguf("example", bytes.span());
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->version, 3U);
  EXPECT_EQ(part->alignment, 32);
  EXPECT_EQ(part->data_start, 320);
  EXPECT_EQ(*part->metadata.GetString("general.architecture"), "llama");
  EXPECT_EQ(*part->metadata.GetInteger("llama.block_count"), 1);
  EXPECT_EQ(*part->metadata.GetFloat("x.f"), 0.5);
  EXPECT_EQ(*part->metadata.GetBool("x.b"), true);
  EXPECT_THAT(*part->metadata.GetStringArray("x.a"), ElementsAre("ab", "c"));
  EXPECT_THAT(*part->metadata.GetIntegerArray("x.i"), ElementsAre(-1, 0, 2));
  ASSERT_EQ(part->tensors.size(), 2U);
  const GgufTensor& w = part->tensors[0];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.type->id, kQ4_0);
  EXPECT_EQ(w.dimension_count, 2);
  EXPECT_THAT(w.dimensions, ElementsAre(32, 2, 1, 1));
  EXPECT_EQ(w.elements, 64);
  EXPECT_EQ(w.size_bytes, 36);
  EXPECT_EQ(w.data_offset, 320);
  const GgufTensor& b = part->tensors[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.size_bytes, 12);
  EXPECT_EQ(b.data_offset, 384);
}

// The values of b end at byte 396; what follows is padding that a file may lack.
TEST(GgufParseTest, D1_RefusesTheWorkedExampleCutAtEveryByte) {
  const std::string file = WorkedExample();
  for (size_t size = 0; size < 396; ++size) {
    EXPECT_THAT(ErrorOf(file.substr(0, size)), HasSubstr("f.gguf: at byte ")) << size;
  }
  for (size_t size = 396; size <= file.size(); ++size) {
    EXPECT_EQ(ErrorOf(file.substr(0, size)), "no error") << size;
  }
}

TEST(GgufParseTest, D2_ReadsVersionsTwoAndThreeOnly) {
  EXPECT_EQ(ErrorOf(GgufBuilder().Version(2).Build()), "no error");
  EXPECT_EQ(ErrorOf(GgufBuilder().Version(3).Build()), "no error");
  EXPECT_EQ(ErrorOf(GgufBuilder().Version(1).Build()),
            "f.gguf: at byte 4: header: the version is 1, wanted 2 or 3; convert the model again");
  EXPECT_THAT(ErrorOf(GgufBuilder().Version(0).Build()), HasSubstr("version is 0"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Version(4).Build()), HasSubstr("a newer program"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Version(0x03000000).Build()), HasSubstr("big-endian"));
}

TEST(GgufParseTest, SaysWhatStandsInPlaceOfTheMagic) {
  EXPECT_EQ(ErrorOf(""),
            "f.gguf: at byte 0: header: the file is empty, wanted a GGUF file; fetch it again");
  EXPECT_THAT(ErrorOf("FUGG1234"), HasSubstr("the magic is \"FUGG\", wanted \"GGUF\""));
  EXPECT_THAT(ErrorOf(std::string("\x80\x02}\n", 4)), HasSubstr("the magic is \"\\200\\002}\\n\""));
}

TEST(GgufParseTest, D3_RefusesKeysThatCannotBeMeant) {
  EXPECT_THAT(ErrorOf(GgufBuilder().Uint32("", 1).Build()), HasSubstr("the name is empty"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Uint32("a\xc0\xaf", 1).Build()), HasSubstr("is not UTF-8"));
  EXPECT_THAT(ErrorOf(GgufBuilder().Uint32(absl::string_view("a\0b", 3), 1).Build()),
              HasSubstr("holds a zero byte"));
  EXPECT_EQ(ErrorOf(GgufBuilder().Uint32(std::string(65535, 'k'), 1).Build()), "no error");
  EXPECT_THAT(ErrorOf(GgufBuilder().Uint32(std::string(65536, 'k'), 1).Build()),
              HasSubstr("a length of 65536 bytes, wanted at most 65535"));
}

TEST(GgufParseTest, D5_AlignmentIsAPowerOfTwo) {
  const std::string value(4, 'v');
  for (const uint32_t alignment : {1U, 8U, 32U, 64U, 4096U}) {
    EXPECT_EQ(ErrorOf(GgufBuilder()
                          .Uint32("general.alignment", alignment)
                          .Tensor("w", {1}, kF32, 0)
                          .Build(value, alignment)),
              "no error")
        << alignment;
  }
  for (const uint32_t alignment : {0U, 3U, 24U, 0xffffffffU}) {
    EXPECT_THAT(ErrorOf(GgufBuilder().Uint32("general.alignment", alignment).Build()),
                HasSubstr("metadata key general.alignment (at byte 24) is "))
        << alignment;
  }
  EXPECT_THAT(ErrorOf(GgufBuilder()
                          .Uint32("general.alignment", 1U << 31)
                          .Tensor("w", {1}, kF32, 0)
                          .Build(value)),
              HasSubstr("the data would start at byte 2147483648, beyond the end"));
}

TEST(GgufParseTest, MeasuresTensorsOfNoneToFourDimensions) {
  const ExactBytes bytes(GgufBuilder()
                             .Tensor("scalar", {}, kF32, 0)
                             .Tensor("cube", {2, 3, 4, 5}, kF32, 32)
                             .Tensor("nothing", {32, 0}, kQ4_0, 512)
                             .Build(std::string(512, 'd')));
  const absl::StatusOr<GgufPart> part = ParseGguf("f", bytes.span());
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->tensors[0].elements, 1);
  EXPECT_EQ(part->tensors[0].size_bytes, 4);
  EXPECT_EQ(part->tensors[1].elements, 120);
  EXPECT_EQ(part->tensors[1].size_bytes, 480);
  EXPECT_EQ(part->tensors[2].elements, 0);
  EXPECT_EQ(part->tensors[2].size_bytes, 0);
}

std::string ErrorOfTensor(const std::vector<uint64_t>& dimensions, uint32_t type,
                          uint64_t offset = 0) {
  return ErrorOf(GgufBuilder().Tensor("w", dimensions, type, offset).Build(std::string(64, 'd')));
}

TEST(GgufParseTest, D4_RefusesShapesThatCannotBe) {
  EXPECT_THAT(ErrorOfTensor({1, 1, 1, 1, 1}, kF32), HasSubstr("tensor w: it has 5 dimensions"));
  EXPECT_THAT(ErrorOfTensor({uint64_t{1} << 63}, kF32), HasSubstr("dimension 0 is 92233"));
  EXPECT_THAT(ErrorOfTensor({33}, kQ4_0), HasSubstr("wanted a multiple of 32"));
  EXPECT_THAT(ErrorOfTensor({}, kQ4_0), HasSubstr("wanted a multiple of 32"));
  // 2^62 + 8 floats: the size in bytes wraps to 32.
  EXPECT_THAT(ErrorOfTensor({(uint64_t{1} << 62) + 8}, kF32), HasSubstr("overflow"));
  // 16 x (2^60 + 1): the number of values wraps to 16.
  EXPECT_THAT(ErrorOfTensor({16, (uint64_t{1} << 60) + 1}, 24), HasSubstr("overflow"));
  EXPECT_THAT(ErrorOfTensor({uint64_t{1} << 32, uint64_t{1} << 32, 1, 1}, 24),
              HasSubstr("overflow"));
}

TEST(GgufParseTest, D4_RefusesUnknownTensorTypes) {
  EXPECT_THAT(ErrorOfTensor({1}, 4), HasSubstr("tensor w: the tensor type is 4"));
  EXPECT_THAT(ErrorOfTensor({1}, 0xffffffff), HasSubstr("the tensor type is 4294967295"));
}

TEST(GgufParseTest, D5_TensorDataMustLieInTheFile) {
  EXPECT_EQ(ErrorOfTensor({16}, kF32), "no error");
  EXPECT_THAT(ErrorOfTensor({17}, kF32), HasSubstr("size 68 bytes) lies beyond the end"));
  EXPECT_EQ(ErrorOfTensor({8}, kF32, 32), "no error");
  EXPECT_THAT(ErrorOfTensor({9}, kF32, 32), HasSubstr("tensor w: its data (offset 32, size 36"));
  EXPECT_THAT(ErrorOfTensor({1}, kF32, 64), HasSubstr("beyond the end"));
  EXPECT_THAT(ErrorOfTensor({1}, kF32, 4), HasSubstr("not aligned: wanted a multiple of 32"));
  EXPECT_THAT(ErrorOfTensor({8}, kF32, uint64_t{0} - 32), HasSubstr("beyond the end"));
}

TEST(GgufParseTest, D5_TensorsLieInAnyOrderButNeverOverEachOther) {
  const std::string data(128, 'd');
  EXPECT_EQ(
      ErrorOf(
          GgufBuilder().Tensor("late", {8}, kF32, 96).Tensor("early", {8}, kF32, 0).Build(data)),
      "no error");
  EXPECT_THAT(
      ErrorOf(
          GgufBuilder().Tensor("early", {9}, kF32, 0).Tensor("late", {8}, kF32, 32).Build(data)),
      HasSubstr("overlaps that of tensor early"));
  EXPECT_THAT(ErrorOf(GgufBuilder()
                          .Tensor("outer", {32}, kF32, 0)
                          .Tensor("inner", {1}, kF32, 32)
                          .Tensor("last", {1}, kF32, 96)
                          .Build(data)),
              HasSubstr("tensor inner: its data at byte "));
  EXPECT_THAT(
      ErrorOf(GgufBuilder().Tensor("one", {8}, kF32, 0).Tensor("same", {8}, kF32, 0).Build(data)),
      HasSubstr("overlaps"));
}

TEST(GgufParseTest, D3_RefusesTensorNamesThatCannotBeMeant) {
  const auto error_of_name = [](absl::string_view name) {
    return ErrorOf(GgufBuilder().Tensor(name, {1}, kF32, 0).Build("1234"));
  };
  EXPECT_EQ(error_of_name(std::string(64, 'n')), "no error");
  EXPECT_THAT(error_of_name(std::string(65, 'n')), HasSubstr("a length of 65 bytes"));
  EXPECT_THAT(error_of_name(""), HasSubstr("tensor 1 of 1: the name is empty"));
  EXPECT_THAT(error_of_name("\xff\xfe"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of_name(absl::string_view("w\0x", 3)), HasSubstr("holds a zero byte"));
}

// Records in memory are larger than in the file, so their number has a limit of its own.
TEST(GgufParseTest, D2_LimitsTheNumberOfRecords) {
  std::string keys =
      "GGUF" + Encoded<uint32_t>(3) + Encoded<uint64_t>(0) + Encoded<uint64_t>(65537);
  keys.resize(keys.size() + 65537 * 13, '\0');
  EXPECT_THAT(ErrorOf(keys), HasSubstr("key/value pairs is 65537, too many: wanted at most 65536"));
  std::string tensors =
      "GGUF" + Encoded<uint32_t>(3) + Encoded<uint64_t>(131073) + Encoded<uint64_t>(0);
  tensors.resize(tensors.size() + 131073 * 24, '\0');
  EXPECT_THAT(ErrorOf(tensors), HasSubstr("tensors is 131073, too many: wanted at most 131072"));
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/weights/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint8_t> FileOf(uint64_t header_bytes, const std::string& header, size_t data_bytes) {
  std::vector<uint8_t> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &header_bytes, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::vector<uint8_t> FileOf(const std::string& header, size_t data_bytes) {
  return FileOf(header.size(), header, data_bytes);
}

std::string ErrorOf(const std::vector<uint8_t>& bytes) {
  return std::string(ParseSafetensors("f.safetensors", bytes).status().message());
}

// The worked example of specs/safetensors-hf.md 3.
std::string Example() {
  std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
      R"("e":{"dtype":"F16","shape":[0,4],"data_offsets":[22,22]}})";
  header.resize(208, ' ');
  return header;
}

TEST(SafetensorsFileTest, ReadsTheWorkedExample) {
  const auto entries = ParseSafetensors("f", FileOf(Example(), 22));
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_THAT((*entries)[0].shape, ElementsAre(2, 2));
  EXPECT_EQ((*entries)[1].dtype->format, kernels::WeightFormat::kBF16);
  EXPECT_EQ((*entries)[1].begin, 16);
  EXPECT_EQ((*entries)[2].end, 22);
}

TEST(SafetensorsFileTest, D1_D6_EveryTruncationOfTheExampleIsRefused) {
  const std::vector<uint8_t> whole = FileOf(Example(), 22);
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<int64_t>(length));
    EXPECT_THAT(ErrorOf(cut), HasSubstr("f.safetensors")) << length;
  }
}

TEST(SafetensorsFileTest, D6_HolesOverlapsAndRestsAreRefused) {
  const auto one = [](const std::string& fields) { return R"({"a":{)" + fields + "}}"; };
  EXPECT_THAT(ErrorOf(FileOf(one(R"("dtype":"F32","shape":[4],"data_offsets":[4,20])"), 20)),
              HasSubstr("begins at 4"));
  EXPECT_THAT(ErrorOf(FileOf(one(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])"), 17)),
              HasSubstr("17 bytes of data"));
  EXPECT_THAT(ErrorOf(FileOf(one(R"("dtype":"F32","shape":[4],"data_offsets":[0,12])"), 12)),
              HasSubstr("do not fit"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                             6)),
              HasSubstr("begins at 2"));
}

TEST(SafetensorsFileTest, D6_HostileLengthsAreRefusedBeforeUse) {
  EXPECT_THAT(ErrorOf(FileOf(uint64_t{1} << 63, "{}", 0)), HasSubstr("header"));
  EXPECT_THAT(ErrorOf(FileOf(3, "{}", 0)), HasSubstr("3 bytes"));
  const std::string huge = "4611686018427387904";  // 2^62; times 4 it overflows
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[)" + huge + "," + huge +
                                 R"(],"data_offsets":[0,16]}})",
                             16)),
              HasSubstr("do not fit"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,)"
                             R"(18446744073709551615]}})",
                             16)),
              HasSubstr("too large"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", 16)),
              HasSubstr("negative"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2)),
              HasSubstr("do not fit"));
}

TEST(SafetensorsFileTest, D6_WhatIsNoHeaderIsRefusedByName) {
  EXPECT_THAT(ErrorOf(FileOf("[1]", 0)), HasSubstr("begin with {"));
  EXPECT_THAT(ErrorOf(FileOf("{", 0)), HasSubstr("no JSON"));
  EXPECT_THAT(ErrorOf(FileOf("{\"\xff\":1}", 0)), HasSubstr("UTF-8"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":1})", 0)), HasSubstr("tensor a"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4)),
              HasSubstr("F31"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[1]}})", 4)),
              HasSubstr("data_offsets"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                             R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                             0)),
              HasSubstr("twice"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],)"
                             R"("data_offsets":[0,0]}})",
                             0)),
              HasSubstr("twice"));
}

TEST(SafetensorsFileTest, NoTensorsNeedNoData) {
  EXPECT_TRUE(ParseSafetensors("f", FileOf("{}", 0)).ok());
  EXPECT_THAT(ErrorOf(FileOf("{}", 1)), HasSubstr("wanted 0"));
}

}  // namespace
}  // namespace trireme::weights

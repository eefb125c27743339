#include "runtime/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/gguf_fixtures.h"

namespace trireme::weights {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() {
    std::string pattern = ::testing::TempDir() + "safetensors_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SafetensorsTest() override { std::filesystem::remove_all(folder_); }

  std::string Path() const { return folder_ + "/out.safetensors"; }
  int FilesInFolder() const {
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) {
      ++files;
    }
    return files;
  }

  std::string folder_;
};

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Expected bytes follow the format's description: 8 bytes of header length, JSON, values.
TEST_F(SafetensorsTest, WritesHeaderThenValuesInOrder) {
  auto writer = SafetensorsWriter::Create(
      Path(), {{.name = "logits.0", .type = SafetensorsType::kFloat32, .shape = {2, 2}},
               {.name = "nothing", .type = SafetensorsType::kFloat32, .shape = {0, 4}},
               {.name = "ids", .type = SafetensorsType::kInt32, .shape = {3}},
               {.name = "scalar", .type = SafetensorsType::kFloat32, .shape = {}}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<float> first = {1.0F, -2.0F, 0.5F};
  const std::vector<int32_t> ids = {7, -1, 9};
  ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(first)).ok());
  ASSERT_TRUE((*writer)->Append(absl::Span<const float>({3.0F})).ok());
  ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(ids)).ok());
  ASSERT_TRUE((*writer)->Append(absl::Span<const float>({4.0F})).ok());
  ASSERT_TRUE((*writer)->Finish().ok());

  const std::string file = ReadFile(Path());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  EXPECT_EQ(header_bytes % 8, 0U);
  ASSERT_EQ(file.size(), 8 + header_bytes + 4 * (4 + 3 + 1));
  EXPECT_EQ(file[8], '{');
  const Json header = Json::parse(file.substr(8, header_bytes));
  EXPECT_EQ(header.at("logits.0"),
            Json::parse(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})"));
  EXPECT_EQ(header.at("nothing"),
            Json::parse(R"({"dtype":"F32","shape":[0,4],"data_offsets":[16,16]})"));
  EXPECT_EQ(header.at("ids"), Json::parse(R"({"dtype":"I32","shape":[3],"data_offsets":[16,28]})"));
  EXPECT_EQ(header.at("scalar"),
            Json::parse(R"({"dtype":"F32","shape":[],"data_offsets":[28,32]})"));
  const float floats[4] = {1.0F, -2.0F, 0.5F, 3.0F};
  EXPECT_EQ(std::memcmp(file.data() + 8 + header_bytes, floats, 16), 0);
  EXPECT_EQ(std::memcmp(file.data() + 8 + header_bytes + 16, ids.data(), 12), 0);
}

TEST_F(SafetensorsTest, AFileWithoutTensorsIsAHeader) {
  auto writer = SafetensorsWriter::Create(Path(), {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ(ReadFile(Path()), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

TEST_F(SafetensorsTest, NobodySeesHalfAFile) {
  {
    auto writer = SafetensorsWriter::Create(Path(), {{.name = "w", .shape = {2}}});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(absl::Span<const float>({1.0F})).ok());
    EXPECT_FALSE(std::filesystem::exists(Path()));
    const absl::Status status = (*writer)->Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(status), HasSubstr("tensor w still lacks 1 values"));
  }
  EXPECT_EQ(FilesInFolder(), 0);
}

TEST_F(SafetensorsTest, RefusesNamesAndShapesThatCannotBe) {
  const auto error_of = [this](std::vector<SafetensorsTensor> tensors) {
    return Message(SafetensorsWriter::Create(Path(), std::move(tensors)).status());
  };
  EXPECT_THAT(error_of({{.name = "w", .shape = {1}}, {.name = "w", .shape = {1}}}),
              HasSubstr("used twice"));
  EXPECT_THAT(error_of({{.name = "\xff", .shape = {1}}}), HasSubstr("no UTF-8"));
  EXPECT_THAT(error_of({{.name = "__metadata__", .shape = {1}}}), HasSubstr("reserved"));
  EXPECT_THAT(error_of({{.name = "w", .shape = {-1}}}), HasSubstr("-1 is negative"));
  EXPECT_THAT(error_of({{.name = "w", .shape = {int64_t{1} << 32, int64_t{1} << 32}}}),
              HasSubstr("too large"));
  EXPECT_THAT(error_of({{.name = "w", .shape = {int64_t{1} << 62}}}), HasSubstr("too large"));
  EXPECT_EQ(FilesInFolder(), 0);
}

TEST_F(SafetensorsTest, NamesAFolderThatIsMissing) {
  const auto writer = SafetensorsWriter::Create(folder_ + "/no/out.safetensors", {});
  EXPECT_THAT(Message(writer.status()), HasSubstr(folder_ + "/no/out.safetensors"));
}

}  // namespace
}  // namespace trireme::weights

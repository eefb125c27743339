#include "runtime/weights/synthetic_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/formats/decode.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/ggml_type.h"
#include "runtime/weights/gguf.h"

namespace trireme::weights {
namespace {

SyntheticModel Small(kernels::WeightFormat format, uint64_t seed) {
  SyntheticModel model{FindSyntheticShape("llama-1b").value(), format, seed};
  model.shape.layers = 1;
  model.shape.model_dim = 256;
  model.shape.query_heads = 4;
  model.shape.key_value_heads = 2;
  model.shape.hidden_dim = 512;
  model.shape.vocabulary = 300;
  return model;
}

std::string Written(const SyntheticModel& model, const std::string& name) {
  const std::string path = testing::TempDir() + "/synthetic_" + name + ".gguf";
  EXPECT_TRUE(WriteSyntheticModel(model, path).ok());
  return path;
}

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(SyntheticModel, OpensInEveryFormatOfAFile) {
  for (const GgmlType& type : AllGgmlTypes()) {
    if (!WeightFormatOf(type.id).has_value()) {
      continue;
    }
    const kernels::WeightFormatInfo& info = kernels::InfoOf(*WeightFormatOf(type.id));
    const std::string path = Written(Small(info.format, 1), info.name);
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << info.name << ": " << checkpoint.status();
    EXPECT_EQ((*checkpoint)->model_spec().layers.size(), 1u);
    EXPECT_EQ((*checkpoint)->model_spec().vocabulary, 300);
    // Embedding, query and output, key and value, three of the feed-forward layer; three norms.
    const int64_t matrices = 256 * 300 + 2 * 256 * (4 * 64) + 2 * 256 * (2 * 64) + 3 * 256 * 512;
    EXPECT_EQ(SyntheticBytes(Small(info.format, 1)).value(),
              matrices / info.storage_values * info.storage_bytes + 3 * 256 * 4);
  }
}

TEST(SyntheticModel, WeightsAreOfTheSizeOfTrainedOnes) {
  const auto file = GgufFile::Open(Written(Small(kernels::WeightFormat::kQ4_K, 1), "size"));
  ASSERT_TRUE(file.ok());
  const GgufTensor* const tensor = (*file)->FindTensor("blk.0.ffn_down.weight");
  ASSERT_NE(tensor, nullptr);
  std::vector<float> values(512);
  kernels::DecodeRow(kernels::WeightFormat::kQ4_K,
                     reinterpret_cast<const std::byte*>((*file)->Data(*tensor).data()), 0, 512,
                     values.data());
  double squares = 0;
  for (const float value : values) {
    squares += static_cast<double>(value) * value;
  }
  const double size = std::sqrt(squares / 512);
  EXPECT_GE(size, 0.01);
  EXPECT_LE(size, 0.04);
}

TEST(SyntheticModel, EqualSeedsGiveEqualFiles) {
  const auto model = [](uint64_t seed) { return Small(kernels::WeightFormat::kQ8_0, seed); };
  const std::string first = Content(Written(model(1), "first"));
  EXPECT_EQ(first, Content(Written(model(1), "second")));
  EXPECT_NE(first, Content(Written(model(2), "third")));
}

TEST(SyntheticModel, RefusesRowsThatTheFormatCannotStore) {
  SyntheticModel model = Small(kernels::WeightFormat::kQ4_K, 1);
  model.shape.hidden_dim = 320;
  const absl::Status status = WriteSyntheticModel(model, testing::TempDir() + "/refused.gguf");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("rows of 320 values"), std::string::npos) << status;
  EXPECT_NE(status.message().find("Q4_K"), std::string::npos) << status;
}

TEST(SyntheticModel, AnUnknownShapeIsRefusedWithTheKnownOnes) {
  const absl::Status status = FindSyntheticShape("gpt-9").status();
  EXPECT_NE(status.message().find("llama-8b"), std::string::npos) << status;
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/weights/hugging_face_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/weights/safetensors.h"

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr char kConfig[] =
    R"({"model_type":"llama","vocab_size":4,"hidden_size":2,"num_hidden_layers":1,)"
    R"("num_attention_heads":1,"intermediate_size":3,"max_position_embeddings":16})";

// A directory of its own, removed at the end.
class HuggingFaceCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("hf_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    Write("config.json", kConfig);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name = "") const {
    return name.empty() ? folder_.string() : (folder_ / name).string();
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  // Float tensors whose values count from 0.
  void WriteTensors(const std::string& name,
                    const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors) {
    std::vector<SafetensorsTensor> header;
    for (const auto& [tensor, shape] : tensors) {
      header.push_back({.name = tensor, .shape = shape});
    }
    auto writer = SafetensorsWriter::Create(Path(name), header);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const auto& [tensor, shape] : tensors) {
      std::vector<float> values(1);
      for (const int64_t extent : shape) {
        values.resize(values.size() * static_cast<size_t>(extent));
      }
      ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(values)).ok());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  std::string ErrorOf(const std::string& path) const {
    return std::string(Checkpoint::Open(path).status().message());
  }

 private:
  fs::path folder_;
};

TEST_F(HuggingFaceCheckpointTest, ADirectoryAFileAndAnIndexAreTheSameModel) {
  WriteTensors("model.safetensors", {{"model.embed_tokens.weight", {4, 2}}});
  Write("model.safetensors.index.json",
        R"({"weight_map":{"model.embed_tokens.weight":"model.safetensors"}})");
  for (const std::string& path :
       {Path(), Path("model.safetensors"), Path("model.safetensors.index.json")}) {
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ((*checkpoint)->model_spec().vocabulary, 4);
    EXPECT_EQ((*checkpoint)->gguf(), nullptr);
    EXPECT_THAT((*checkpoint)->TensorExtents("model.embed_tokens.weight").value(),
                ElementsAre(4, 2));
  }
}

TEST_F(HuggingFaceCheckpointTest, D7_AnIndexTakesEachTensorFromItsFileOnly) {
  WriteTensors("a.safetensors", {{"model.embed_tokens.weight", {4, 2}}, {"x", {1}}});
  WriteTensors("b.safetensors", {{"x", {7}}});
  Write("model.safetensors.index.json",
        R"({"weight_map":{"model.embed_tokens.weight":"a.safetensors","x":"b.safetensors"}})");
  const auto checkpoint = Checkpoint::Open(Path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT((*checkpoint)->TensorExtents("x").value(), ElementsAre(7));
}

TEST_F(HuggingFaceCheckpointTest, D7_AnIndexNamesNothingOutsideItsFolder) {
  for (const char* name : {"/etc/passwd", "../a.safetensors", "", "a\\\\b"}) {
    Write("model.safetensors.index.json", std::string(R"({"weight_map":{"w":")") + name + R"("}})");
    EXPECT_THAT(ErrorOf(Path()), HasSubstr("plain file name")) << name;
  }
}

TEST_F(HuggingFaceCheckpointTest, D7_AnIndexThatPromisesTooMuchIsRefused) {
  WriteTensors("a.safetensors", {{"model.embed_tokens.weight", {4, 2}}});
  Write("model.safetensors.index.json", R"({"weight_map":{"w":"a.safetensors"}})");
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("does not hold it"));
  Write("model.safetensors.index.json", R"({"weight_map":7})");
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("weight_map"));
}

TEST_F(HuggingFaceCheckpointTest, WhatIsMissingIsNamed) {
  EXPECT_TRUE(absl::IsNotFound(Checkpoint::Open(Path()).status()));
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("model.safetensors"));
  EXPECT_TRUE(absl::IsNotFound(Checkpoint::Open(Path("none.safetensors")).status()));
  WriteTensors("model.safetensors", {{"other", {1}}});
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("model.embed_tokens.weight"));
  Write("config.json", R"({"model_type":"unheard_of"})");
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("unheard_of"));
}

TEST_F(HuggingFaceCheckpointTest, UnknownMethodsOfQuantisationAreRefusedByName) {
  WriteTensors("model.safetensors", {{"a", {2}}});
  std::string config = kConfig;
  config.pop_back();
  Write("config.json", config + R"(,"quantization_config":{"quant_method":"quip","bits":4}})");
  const absl::Status status = HuggingFaceCheckpoint::Open(Path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("key quantization_config.quant_method is quip;"));
  Write("config.json", config + R"(,"quantization_config":null})");
  EXPECT_TRUE(HuggingFaceCheckpoint::Open(Path()).ok());
}

TEST_F(HuggingFaceCheckpointTest, AQuantisedModuleStandsInThePlaceOfItsTensor) {
  std::string config = kConfig;
  config.pop_back();
  Write("config.json", config + R"(,"quantization_config":{"quant_method":"gptq","bits":4}})");
  // 8 inputs and outputs: codes 1, zero points 0 + 1, scale 0.5, by their bits.
  auto writer = SafetensorsWriter::Create(
      Path("model.safetensors"),
      {{.name = "m.qweight", .type = SafetensorsType::kInt32, .shape = {1, 8}},
       {.name = "m.qzeros", .type = SafetensorsType::kInt32, .shape = {1, 1}},
       {.name = "m.scales", .type = SafetensorsType::kFloat32, .shape = {1, 8}},
       {.name = "m.input_scale", .type = SafetensorsType::kFloat32, .shape = {1}},
       {.name = "model.embed_tokens.weight", .type = SafetensorsType::kFloat32, .shape = {4, 2}}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(std::vector<int32_t>(8, 0x33333333)).ok());
  ASSERT_TRUE((*writer)->Append(std::vector<int32_t>{0}).ok());
  ASSERT_TRUE((*writer)->Append(std::vector<float>(8, 0.5F)).ok());
  ASSERT_TRUE((*writer)->Append(std::vector<float>{7}).ok());
  ASSERT_TRUE((*writer)->Append(std::vector<float>(8)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto checkpoint = Checkpoint::Open(Path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT((*checkpoint)->QuantizedNames(), ElementsAre("m.weight"));
  EXPECT_THAT((*checkpoint)->TensorExtents("m.weight").value(), ElementsAre(8, 8));
  EXPECT_TRUE((*checkpoint)->IsAdvisory("m.input_scale"));
  EXPECT_FALSE((*checkpoint)->IsAdvisory("m.scales"));
  const auto tensor = (*checkpoint)->Tensor("m.weight", 8, 8);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  float values[2];
  ASSERT_TRUE(tensor->Decode(7, {6, 8}, values).ok());
  EXPECT_THAT(values, ElementsAre(1, 1));
  EXPECT_THAT(std::string((*checkpoint)->Tensor("m.weight", 8, 16).status().message()),
              HasSubstr("m.qweight"));
}

TEST_F(HuggingFaceCheckpointTest, TheTextModelOfAWrapperHasItsOwnNames) {
  Write("config.json", std::string(R"({"model_type":"wrapper","text_config":)") + kConfig + "}");
  WriteTensors("model.safetensors",
               {{"language_model.model.embed_tokens.weight", {4, 2}}, {"vision_tower.w", {3}}});
  const auto checkpoint = Checkpoint::Open(Path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE((*checkpoint)->TensorExtents("model.embed_tokens.weight").has_value());
  EXPECT_FALSE((*checkpoint)->TensorExtents("vision_tower.w").has_value());
}

TEST_F(HuggingFaceCheckpointTest, GenerationConfigIsThereWhereTheDirectoryHasOne) {
  WriteTensors("model.safetensors", {{"model.embed_tokens.weight", {4, 2}}});
  EXPECT_EQ((*Checkpoint::Open(Path()))->generation_config(), nullptr);
  Write("generation_config.json", R"({"eos_token_id":[1,2]})");
  const auto checkpoint = Checkpoint::Open(Path());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_THAT(*(*checkpoint)->generation_config()->Integers("eos_token_id"), ElementsAre(1, 2));
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/model/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/family_fixtures.h"
#include "tests/support/lone_stage.h"
#include "tests/support/reference_model.h"
#include "tests/support/safetensors_reader.h"

namespace trireme::model {
namespace {

using testing::LoneStage;
using testing::ReadSafetensors;
using testing::ReferenceModel;

using testing::FamilyFolder;
using testing::ModelsOf;

// A family's folder, and the context that its expected values belong to (0: the trained one).
struct FamilyCase {
  const char* family;
  const char* expected = "expected";
  int64_t context = 0;
};

nlohmann::json Expected(const FamilyCase& family) {
  return nlohmann::json::parse(
      std::ifstream(FamilyFolder(family.family) + "/" + family.expected + ".json"));
}

std::string ExpectedTensors(const FamilyCase& family) {
  return FamilyFolder(family.family) + "/" + family.expected + ".safetensors";
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

std::vector<std::string> TableNames() {
  std::vector<std::string> names;
  const kernels::KernelTableList list = kernels::RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    names.emplace_back(list.tables[i]->name);
  }
  return names;
}

class FamilyTest : public ::testing::TestWithParam<FamilyCase> {
 protected:
  // Every container of the family.
  static std::vector<std::string> Models() { return ModelsOf(GetParam().family); }
};

// The fixtures' README derives 2e-4: the independent engine's own float32 run is within 5e-5 of its
// float64 values, another order of summation costs about as much again, and the smallest mistake in
// a feature costs 2.6e-3.
constexpr double kLogitTolerance = 2e-4;

TEST_P(FamilyTest, LogitsAgreeWithTheIndependentEngine) {
  for (const std::string& model : Models()) {
    const nlohmann::json expected = Expected(GetParam());
    const auto tensors = ReadSafetensors(ExpectedTensors(GetParam()));
    for (const std::string& table : TableNames()) {
      LoneStage stage(model, {.kernels = table,
                              .activations = ActivationMode::kFloat32,
                              .context = GetParam().context});
      int index = 0;
      for (const nlohmann::json& sequence : expected["sequences"]) {
        const std::vector<int32_t> ids = sequence["input_ids"];
        const auto& logits = tensors.at("logits." + std::to_string(index++));
        EXPECT_LT(LargestDifference(stage.Logits(ids), logits.floats), kLogitTolerance)
            << model << " " << table;
      }
    }
  }
}

TEST_P(FamilyTest, GreedyIdsEqualTheIndependentEngines) {
  for (const std::string& model : Models()) {
    const nlohmann::json expected = Expected(GetParam());
    LoneStage stage(model,
                    {.activations = ActivationMode::kFloat32, .context = GetParam().context});
    const int64_t vocabulary = stage.checkpoint().model_spec().vocabulary;
    for (const nlohmann::json& sequence : expected["sequences"]) {
      std::vector<int32_t> ids = sequence["input_ids"];
      const std::vector<int32_t> greedy = sequence["greedy_ids"];
      const size_t prompt = ids.size();
      ids.insert(ids.end(), greedy.begin(), greedy.end());
      const std::vector<float> logits = stage.Logits(ids);
      for (size_t i = 0; i < greedy.size(); ++i) {
        const auto row = logits.begin() + static_cast<int64_t>(prompt + i - 1) * vocabulary;
        EXPECT_EQ(std::max_element(row, row + vocabulary) - row, greedy[i]) << "token " << i;
      }
    }
  }
}

TEST_P(FamilyTest, ReferenceModelAgreesWithTheIndependentEngine) {
  for (const std::string& model : Models()) {
    const nlohmann::json expected = Expected(GetParam());
    const auto tensors = ReadSafetensors(ExpectedTensors(GetParam()));
    const auto checkpoint = weights::Checkpoint::Open(model);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ReferenceModel reference(**checkpoint, GetParam().context);
    const std::vector<int32_t> ids = expected["sequences"][1]["input_ids"];
    const std::vector<std::vector<double>> logits = reference.Logits(ids);
    const std::vector<float>& wanted = tensors.at("logits.1").floats;
    double largest = 0;
    for (size_t row = 0; row < logits.size(); ++row) {
      for (size_t i = 0; i < logits[row].size(); ++i) {
        largest = std::max(
            largest,
            std::abs(logits[row][i] - static_cast<double>(wanted[row * logits[row].size() + i])));
      }
    }
    // Both are float64; the expected values are stored as float32 (logits below 32: half a unit is
    // 2e-6), GGUF keeps rope factors, scales and epsilons as float32 (relative 6e-8, on angles
    // below 100 and on logits).
    EXPECT_LT(largest, 2e-5) << model;
  }
}

TEST_P(FamilyTest, BitsDoNotDependOnChunksThreadsOrTable) {
  for (const std::string& model : Models()) {
    const nlohmann::json expected = Expected(GetParam());
    const std::vector<int32_t> ids = expected["sequences"][2]["input_ids"];
    for (const ActivationMode mode : {ActivationMode::kAuto, ActivationMode::kFloat32}) {
      for (const auto kv_format : {kernels::KeyValueFormat::kF32, kernels::KeyValueFormat::kF16}) {
        LoneStage whole(model, {.kernels = "reference",
                                .activations = mode,
                                .kv_format = kv_format,
                                .chunk = 512,
                                .context = GetParam().context});
        const std::vector<float> wanted = whole.Logits(ids);
        for (const std::string& table : TableNames()) {
          for (const int64_t chunk : {1, 7, 64}) {
            LoneStage stage(model, {.kernels = table,
                                    .activations = mode,
                                    .kv_format = kv_format,
                                    .chunk = chunk,
                                    .threads = chunk == 7 ? 3 : 1,
                                    .context = GetParam().context});
            EXPECT_EQ(stage.Logits(ids), wanted) << model << " " << table << ", chunk " << chunk;
          }
        }
      }
    }
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<FamilyCase>& info) {
  return std::string(info.param.family) +
         (std::string(info.param.expected) == "expected" ? "" : "_long");
}

INSTANTIATE_TEST_SUITE_P(
    Families, FamilyTest,
    ::testing::Values(FamilyCase{"llama"}, FamilyCase{"llama_rope_linear"},
                      FamilyCase{"llama_rope_llama3"}, FamilyCase{"llama_rope_yarn"},
                      FamilyCase{"llama_bias"}, FamilyCase{"mistral"}, FamilyCase{"qwen2"},
                      FamilyCase{"qwen3"}, FamilyCase{"phi3"},
                      FamilyCase{"phi3_longrope", "expected", 256},
                      FamilyCase{"phi3_longrope", "expected_long", 2048}, FamilyCase{"gemma2"},
                      FamilyCase{"gemma3_text"}, FamilyCase{"smollm3"}, FamilyCase{"olmo2"},
                      FamilyCase{"exaone4"}, FamilyCase{"glm4"}, FamilyCase{"granite"},
                      FamilyCase{"ernie4_5"}, FamilyCase{"starcoder2"}, FamilyCase{"cohere2"},
                      FamilyCase{"nemotron"}, FamilyCase{"mixtral"}, FamilyCase{"qwen2_moe"},
                      FamilyCase{"qwen3_moe"}, FamilyCase{"glm4_moe"}, FamilyCase{"gpt_oss"},
                      FamilyCase{"deepseek_v2"}, FamilyCase{"deepseek_v3"}, FamilyCase{"arcee"},
                      FamilyCase{"seed_oss"}, FamilyCase{"olmo3"}, FamilyCase{"olmoe"},
                      FamilyCase{"minimax_m2"}),
    NameOfCase);

}  // namespace
}  // namespace trireme::model

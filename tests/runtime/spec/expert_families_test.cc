// What the functions of mixtures read from their tiny checkpoints, in both containers, against the
// config.json of the fixture by hand.
#include "runtime/spec/expert_families.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "runtime/weights/checkpoint.h"
#include "tests/support/family_fixtures.h"

namespace trireme::spec {
namespace {

void ForEachContainer(const std::string& family,
                      const std::function<void(const ModelSpec&)>& expect) {
  for (const std::string& path : testing::ModelsOf(family)) {
    const auto checkpoint = weights::Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    expect((*checkpoint)->model_spec());
  }
}

TEST(ExpertFamiliesTest, MixtralRenormalises) {
  ForEachContainer("mixtral", [](const ModelSpec& model) {
    const ExpertsSpec& experts = model.layers[0].feed_forward.experts.value();
    EXPECT_EQ(experts.count, 8);
    EXPECT_EQ(experts.used, 2);
    EXPECT_EQ(experts.hidden_dim, 64);
    EXPECT_TRUE(experts.renormalizes);
    EXPECT_EQ(model.layers[0].feed_forward.hidden_dim, 0);
  });
}

TEST(ExpertFamiliesTest, Qwen2MoeHasAWeighedSharedExpert) {
  ForEachContainer("qwen2_moe", [](const ModelSpec& model) {
    const ExpertsSpec& experts = model.layers[1].feed_forward.experts.value();
    EXPECT_FALSE(experts.renormalizes);
    EXPECT_EQ(experts.shared_dim, 64);
    EXPECT_TRUE(experts.has_shared_gate);
    EXPECT_TRUE(model.layers[1].attention.has_bias);
  });
}

TEST(ExpertFamiliesTest, OlmoeKeepsItsWeightsAsTheyAre) {
  ForEachContainer("olmoe", [](const ModelSpec& model) {
    const ExpertsSpec& experts = model.layers[0].feed_forward.experts.value();
    EXPECT_EQ(experts.count, 8);
    EXPECT_EQ(experts.used, 3);
    EXPECT_EQ(experts.hidden_dim, 32);
    EXPECT_FALSE(experts.renormalizes);
    EXPECT_EQ(model.layers[0].attention.query_key_norm, QueryKeyNorm::kAllHeads);
  });
}

TEST(ExpertFamiliesTest, MiniMaxM2RoutesBySigmoid) {
  ForEachContainer("minimax_m2", [](const ModelSpec& model) {
    const ExpertsSpec& experts = model.layers[1].feed_forward.experts.value();
    EXPECT_EQ(experts.routing, Routing::kSigmoid);
    EXPECT_TRUE(experts.has_correction_bias);
    EXPECT_TRUE(experts.renormalizes);
    EXPECT_EQ(experts.hidden_dim, 32);
    EXPECT_EQ(model.ropes[0].rotated_dim, 8);
  });
}

TEST(ExpertFamiliesTest, KimiK2IsADeepSeekV3) {
  const std::filesystem::path folder = ::testing::TempDir() + "/kimi_k2";
  std::filesystem::create_directories(folder);
  const std::filesystem::path source = "tests/data/families/deepseek_v3";
  std::filesystem::copy_file(source / "model.safetensors", folder / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  std::ifstream config(source / "config.json");
  std::string text((std::istreambuf_iterator<char>(config)), std::istreambuf_iterator<char>());
  const std::string type = "\"model_type\": \"deepseek_v3\"";
  ASSERT_NE(text.find(type), std::string::npos);
  text.replace(text.find(type), type.size(), "\"model_type\": \"kimi_k2\"");
  std::ofstream(folder / "config.json") << text;
  const auto checkpoint = weights::Checkpoint::Open(folder.string());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelSpec& model = (*checkpoint)->model_spec();
  EXPECT_EQ(model.family, "deepseek_v3");
  EXPECT_EQ(model.layers[1].feed_forward.experts->routing, Routing::kSigmoid);
}

TEST(ExpertFamiliesTest, Glm4MoeBeginsWithADenseLayer) {
  ForEachContainer("glm4_moe", [](const ModelSpec& model) {
    EXPECT_EQ(model.layers[0].feed_forward.hidden_dim, 128);
    EXPECT_FALSE(model.layers[0].feed_forward.experts.has_value());
    const ExpertsSpec& experts = model.layers[1].feed_forward.experts.value();
    EXPECT_EQ(experts.routing, Routing::kSigmoid);
    EXPECT_TRUE(experts.has_correction_bias);
    EXPECT_TRUE(experts.renormalizes);
    EXPECT_EQ(experts.scale, 1.5);
    EXPECT_EQ(experts.shared_dim, 24);
    EXPECT_EQ(model.Extents().hidden_dim, 128);
  });
}

TEST(ExpertFamiliesTest, GptOssHasSinksAndAlternatingWindows) {
  ForEachContainer("gpt_oss", [](const ModelSpec& model) {
    EXPECT_TRUE(model.layers[0].attention.has_sinks);
    EXPECT_EQ(model.layers[0].attention.window, 12);
    EXPECT_EQ(model.layers[1].attention.window, 0);
    EXPECT_EQ(model.layers[0].feed_forward.activation, kernels::Activation::kClampedSwish);
    EXPECT_EQ(model.layers[0].feed_forward.experts->routing, Routing::kSoftmaxChosen);
    EXPECT_TRUE(model.layers[0].feed_forward.experts->has_bias);
    EXPECT_NEAR(model.ropes[0].multiplier, 1.34657359, 1e-8);  // 0.1 ln 32 + 1
  });
}

TEST(ExpertFamiliesTest, DeepSeekCachesOneLatentHead) {
  ForEachContainer("deepseek_v3", [](const ModelSpec& model) {
    const AttentionSpec& attention = model.layers[0].attention;
    EXPECT_EQ(attention.key_value_heads, 1);
    EXPECT_EQ(attention.head_dim, 40);  // 32 + 8
    EXPECT_EQ(attention.latent->query_rank, 48);
    EXPECT_EQ(attention.latent->unrotated_dim, 24);
    EXPECT_EQ(attention.latent->value_dim, 16);
    // (24 + 8)^-0.5 (0.1 ln 40 + 1)^2; GGUF keeps mscale as float32.
    EXPECT_NEAR(attention.scale, 1.3688879 * 1.3688879 / std::sqrt(32.0), 1e-6);
    EXPECT_EQ(model.ropes[0].multiplier, 1);
    const ExpertsSpec& experts = model.layers[1].feed_forward.experts.value();
    EXPECT_EQ(experts.groups, 4);
    EXPECT_EQ(experts.used_groups, 2);
    EXPECT_EQ(experts.group_score, GroupScore::kSumOfTwo);
    EXPECT_EQ(experts.scale, 2.5);
  });
  ForEachContainer("deepseek_v2", [](const ModelSpec& model) {
    EXPECT_EQ(model.layers[0].attention.latent->query_rank, 0);
    const ExpertsSpec& experts = model.layers[1].feed_forward.experts.value();
    EXPECT_EQ(experts.routing, Routing::kSoftmax);
    EXPECT_FALSE(experts.renormalizes);
    EXPECT_FALSE(experts.has_correction_bias);
    EXPECT_EQ(experts.shared_dim, 64);
  });
}

}  // namespace
}  // namespace trireme::spec

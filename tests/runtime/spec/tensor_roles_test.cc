#include "runtime/spec/tensor_roles.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace trireme::spec {
namespace {

TEST(TensorRolesTest, NamesCarryTheLayerAndTheExpert) {
  const TensorSources gguf = DefaultSources(Container::kGguf);
  const TensorSources hugging_face = DefaultSources(Container::kHuggingFace);
  const auto name = [](const TensorSources& sources, Role role) {
    return TensorName(sources[static_cast<size_t>(role)], 12, 3);
  };
  EXPECT_EQ(name(gguf, Role::kQuery), "blk.12.attn_q.weight");
  EXPECT_EQ(name(gguf, Role::kEmbedding), "token_embd.weight");
  EXPECT_EQ(name(gguf, Role::kExpertUp), "blk.12.ffn_up_exps.weight");
  EXPECT_EQ(name(hugging_face, Role::kQuery), "model.layers.12.self_attn.q_proj.weight");
  EXPECT_EQ(name(hugging_face, Role::kExpertUp), "model.layers.12.mlp.experts.3.up_proj.weight");
}

TEST(TensorRolesTest, NamesOfGgufAreUnique) {
  std::set<std::string> names;
  for (const TensorRole& role : TensorRoles()) {
    EXPECT_TRUE(names.insert(role.gguf_name).second) << role.gguf_name;
  }
}

TEST(TensorRolesTest, StackedExpertsHaveOneExtentMore) {
  ModelSpec model;
  model.model_dim = 64;
  LayerSpec layer;
  layer.feed_forward.experts = ExpertsSpec{.count = 8, .used = 2, .hidden_dim = 32};
  const TensorRole& role = RoleOf(Role::kExpertDown);
  model.sources = DefaultSources(Container::kGguf);
  EXPECT_EQ(StoredExtents(role, model, layer), (std::vector<int64_t>{8, 64, 32}));
  model.sources = DefaultSources(Container::kHuggingFace);
  EXPECT_EQ(StoredExtents(role, model, layer), (std::vector<int64_t>{64, 32}));
}

TEST(TensorRolesTest, RolesOfPartsThatALayerLacksAreNotUsed) {
  const ModelSpec model;
  LayerSpec layer;
  layer.feed_forward.hidden_dim = 32;
  EXPECT_TRUE(RoleOf(Role::kQuery).is_used(model, layer));
  EXPECT_FALSE(RoleOf(Role::kQueryBias).is_used(model, layer));
  EXPECT_FALSE(RoleOf(Role::kRouter).is_used(model, layer));
  EXPECT_FALSE(RoleOf(Role::kLatent).is_used(model, layer));
  layer.attention.latent = LatentSpec{.query_rank = 16};
  EXPECT_FALSE(RoleOf(Role::kQuery).is_used(model, layer));
  EXPECT_TRUE(RoleOf(Role::kQueryUp).is_used(model, layer));
}

TEST(TensorRolesTest, ExtentsFollowTheModel) {
  ModelSpec model;
  model.model_dim = 576;
  model.vocabulary = 49152;
  LayerSpec layer;
  layer.attention = {.query_heads = 9, .key_value_heads = 3, .head_dim = 64};
  layer.feed_forward.hidden_dim = 1536;
  EXPECT_EQ(ExtentOf(Extent::kQueryDim, model, layer), 576);
  EXPECT_EQ(ExtentOf(Extent::kKeyValueDim, model, layer), 192);
  EXPECT_EQ(ExtentOf(Extent::kHiddenDim, model, layer), 1536);
  EXPECT_EQ(ExtentOf(Extent::kVocabulary, model, layer), 49152);
  EXPECT_EQ(ExtentOf(Extent::kOne, model, layer), 1);
}

}  // namespace
}  // namespace trireme::spec

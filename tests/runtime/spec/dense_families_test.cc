// What each family's function reads from its tiny checkpoint, in both containers, against the
// config.json of the fixture by hand. That the values are used rightly is stage_test's business.
#include "runtime/spec/dense_families.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
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

TEST(DenseFamiliesTest, LlamasRopeIsPermutedInGgufOnly) {
  for (const std::string& path : testing::ModelsOf("qwen3")) {
    EXPECT_EQ((*weights::Checkpoint::Open(path))->model_spec().ropes[0].pairing,
              RopePairing::kHalfSplit);
  }
  for (const std::string& path : testing::ModelsOf("granite")) {
    const bool is_gguf = path.ends_with(".gguf");
    EXPECT_EQ((*weights::Checkpoint::Open(path))->model_spec().ropes[0].pairing,
              is_gguf ? RopePairing::kInterleaved : RopePairing::kHalfSplit);
  }
}

TEST(DenseFamiliesTest, MistralIsWindowedInEveryLayer) {
  ForEachContainer("mistral", [](const ModelSpec& model) {
    EXPECT_EQ(model.layers[0].attention.window, 12);
    EXPECT_EQ(model.layers[1].attention.window, 12);
  });
}

TEST(DenseFamiliesTest, Qwen2HasBiasesAndNoWindowUnlessSwitchedOn) {
  ForEachContainer("qwen2", [](const ModelSpec& model) {
    EXPECT_TRUE(model.layers[1].attention.has_bias);
    EXPECT_FALSE(model.layers[1].attention.has_output_bias);
    EXPECT_EQ(model.layers[1].attention.window, 0);
    EXPECT_TRUE(model.tied_output);
    EXPECT_EQ(model.vocabulary, 331);
  });
}

TEST(DenseFamiliesTest, Gemma2HasCapsAlternatingWindowsAndItsOwnScale) {
  ForEachContainer("gemma2", [](const ModelSpec& model) {
    EXPECT_EQ(model.layers[0].attention.window, 12);
    EXPECT_EQ(model.layers[1].attention.window, 0);
    EXPECT_EQ(model.layers[2].attention.window, 12);
    EXPECT_EQ(model.layers[0].attention.soft_cap, 4);
    EXPECT_EQ(model.logit_soft_cap, 10);
    EXPECT_NEAR(model.embedding_scale, 9.797959, 1e-6);  // sqrt(96)
    EXPECT_TRUE(model.layers[0].has_input_norms && model.layers[0].has_output_norms);
    EXPECT_TRUE(model.tied_output);
    // 64^-0.5; converters multiply the queries by 0.5 and leave 16^-0.5.
    EXPECT_EQ(model.layers[0].attention.scale, model.norm_gain_offset == 1 ? 0.125 : 0.25);
  });
}

TEST(DenseFamiliesTest, Gemma3RotatesWindowedLayersWithoutScaling) {
  ForEachContainer("gemma3_text", [](const ModelSpec& model) {
    ASSERT_EQ(model.ropes.size(), 2u);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(model.layers[i].attention.window, i == 5 ? 0 : 12);
      EXPECT_EQ(model.layers[i].attention.rope_index, i == 5 ? 0 : 1);
    }
    EXPECT_DOUBLE_EQ(model.ropes[0].frequencies[0], 0.125);  // linear, factor 8
    EXPECT_DOUBLE_EQ(model.ropes[1].frequencies[0], 1);
    EXPECT_NEAR(model.ropes[1].frequencies[4], 0.01, 1e-15);  // 10000^(-8/16)
  });
}

TEST(DenseFamiliesTest, LongRopeChoosesItsFactorsByTheContext) {
  ForEachContainer("phi3_longrope", [](const ModelSpec& model) {
    EXPECT_EQ(model.ropes[0].rotated_dim, 12);
    EXPECT_NEAR(model.ropes[0].multiplier, 1.172603965, 1e-7);  // sqrt(1 + ln 8 / ln 256)
    EXPECT_NEAR(model.ForContext(2048).ropes[0].frequencies[0], 1 / 1.2, 1e-7);
    EXPECT_NEAR(model.ForContext(257).ropes[0].frequencies[0], 1 / 1.2, 1e-7);
    EXPECT_EQ(model.ForContext(256).ropes[0].frequencies[0], 1);
  });
}

TEST(DenseFamiliesTest, LayersWithoutPositions) {
  ForEachContainer("smollm3", [](const ModelSpec& model) {
    EXPECT_EQ(model.layers[2].attention.rope_index, 0);
    EXPECT_EQ(model.layers[3].attention.rope_index, -1);
  });
  for (const char* family : {"exaone4", "cohere2"}) {
    ForEachContainer(family, [](const ModelSpec& model) {
      EXPECT_EQ(model.layers[0].attention.rope_index, 0);
      EXPECT_EQ(model.layers[0].attention.window, 12);
      EXPECT_EQ(model.layers[3].attention.rope_index, -1);
      EXPECT_EQ(model.layers[3].attention.window, 0);
    });
  }
}

TEST(DenseFamiliesTest, NormsStandWhereTheFamilyPutsThem) {
  ForEachContainer("olmo2", [](const ModelSpec& model) {
    EXPECT_FALSE(model.layers[0].has_input_norms);
    EXPECT_TRUE(model.layers[0].has_output_norms);
    EXPECT_EQ(model.layers[0].attention.query_key_norm, QueryKeyNorm::kAllHeads);
  });
  ForEachContainer("cohere2", [](const ModelSpec& model) {
    EXPECT_TRUE(model.layers[0].is_parallel);
    EXPECT_EQ(model.norm, NormKind::kLayer);
    EXPECT_FALSE(model.has_norm_bias);
    EXPECT_EQ(model.logit_scale, 0.25);
  });
}

TEST(DenseFamiliesTest, GraniteScalesFourThings) {
  ForEachContainer("granite", [](const ModelSpec& model) {
    EXPECT_EQ(model.embedding_scale, 1.5);
    EXPECT_NEAR(model.residual_scale, 0.7, 1e-7);
    EXPECT_EQ(model.logit_scale, 0.5);
    EXPECT_EQ(model.layers[0].attention.scale, 0.25);
  });
}

TEST(DenseFamiliesTest, Olmo3ScalesTheRopeOfLayersWithoutAWindow) {
  ForEachContainer("olmo3", [](const ModelSpec& model) {
    EXPECT_EQ(model.layers[2].attention.window, 12);
    EXPECT_EQ(model.layers[3].attention.window, 0);
    EXPECT_EQ(model.layers[2].attention.rope_index, 1);
    EXPECT_EQ(model.layers[3].attention.rope_index, 0);
    // 0.1 ln 8 + 1 (yarn, arXiv 2309.00071), which the directory's file states and GGUF leaves out.
    EXPECT_NEAR(model.ropes[0].multiplier, 1.2079441541679836, 1e-6);
    EXPECT_EQ(model.ropes[1].multiplier, 1);
    // The base is 500000 and heads are 8 wide: the second frequency is 500000^(-2/8).
    EXPECT_NEAR(model.ropes[1].frequencies[1], 0.037606, 1e-6);
    EXPECT_FALSE(model.layers[0].has_input_norms);
  });
}

TEST(DenseFamiliesTest, SeedOssHasNoOutputBias) {
  ForEachContainer("seed_oss", [](const ModelSpec& model) {
    EXPECT_TRUE(model.layers[1].attention.has_bias);
    EXPECT_FALSE(model.layers[1].attention.has_output_bias);
    EXPECT_EQ(model.layers[1].attention.head_dim, 16);
  });
}

TEST(DenseFamiliesTest, FeedForwardsWithoutGate) {
  ForEachContainer("arcee", [](const ModelSpec& model) {
    EXPECT_FALSE(model.layers[0].feed_forward.is_gated);
    EXPECT_EQ(model.layers[0].feed_forward.activation, kernels::Activation::kRelu2);
    EXPECT_EQ(model.norm, NormKind::kRms);
  });

  ForEachContainer("nemotron", [](const ModelSpec& model) {
    EXPECT_FALSE(model.layers[0].feed_forward.is_gated);
    EXPECT_EQ(model.layers[0].feed_forward.activation, kernels::Activation::kRelu2);
    EXPECT_EQ(model.ropes[0].rotated_dim, 8);
    EXPECT_TRUE(model.has_norm_bias);
  });
  ForEachContainer("starcoder2", [](const ModelSpec& model) {
    EXPECT_FALSE(model.layers[0].feed_forward.is_gated);
    EXPECT_EQ(model.layers[0].feed_forward.activation, kernels::Activation::kGeluTanh);
    EXPECT_TRUE(model.layers[0].feed_forward.has_up_bias);
    EXPECT_TRUE(model.layers[0].feed_forward.has_down_bias);
    EXPECT_TRUE(model.layers[0].attention.has_output_bias);
    EXPECT_EQ(model.layers[1].attention.window, 12);
  });
}

}  // namespace
}  // namespace trireme::spec

#include "runtime/spec/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/weights/checkpoint.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::spec {
namespace {

using ::testing::HasSubstr;

TEST(FamiliesTest, ATinyLlamaIsReadAsItsConfigurationSays) {
  const auto checkpoint =
      weights::Checkpoint::Open("tests/data/families/llama_rope_yarn/model.gguf");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelSpec& model = (*checkpoint)->model_spec();
  // config.json of that fixture: hidden_size 64, 8 heads of 32, 2 layers, intermediate 128,
  // vocabulary 331, yarn factor 4.
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.model_dim, 64);
  EXPECT_EQ(model.layers.size(), 2u);
  EXPECT_EQ(model.layers[0].attention.query_heads, 8);
  EXPECT_EQ(model.layers[0].attention.key_value_heads, 8);
  EXPECT_EQ(model.layers[0].attention.head_dim, 32);
  EXPECT_EQ(model.layers[0].feed_forward.hidden_dim, 128);
  EXPECT_EQ(model.vocabulary, 331);
  EXPECT_FALSE(model.tied_output);
  // 0.1 ln 4 + 1, by hand.
  EXPECT_NEAR(model.ropes[0].multiplier, 1.1386294, 1e-6);
  EXPECT_DOUBLE_EQ(model.ropes[0].frequencies[0], 1);
  EXPECT_EQ(model.Extents().query_heads, 8);
}

TEST(FamiliesTest, D8_FaultyModelsAreRefusedByTheNameOfTheFault) {
  int judged = 0;
  for (const BadGguf& bad : BadGgufs()) {
    const std::string path = std::string(kGgufFixtures) + "/bad/" + bad.file;
    const auto checkpoint = weights::Checkpoint::Open(path);
    if (bad.stage != "model" || checkpoint.ok()) {
      continue;  // those that only the tensors show are judged in shard_plan_test
    }
    EXPECT_EQ(JudgeError(checkpoint.status(), path, bad.words), "") << bad.wrong;
    ++judged;
  }
  EXPECT_GT(judged, 20);
}

}  // namespace
}  // namespace trireme::spec

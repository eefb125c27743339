#include "runtime/weights/generation_defaults.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/family_fixtures.h"

namespace trireme::weights {
namespace {

GenerationDefaults DefaultsOf(const std::string& path) {
  const auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto defaults = ReadGenerationDefaults(**checkpoint);
  EXPECT_TRUE(defaults.ok()) << defaults.status();
  return *defaults;
}

// generation_config.json of that fixture: eos 317 and 318, temperature 0.6, top_p 0.9.
TEST(GenerationDefaultsTest, GenerationConfigNamesAllEndsAndTheSampling) {
  for (const std::string& path : testing::ModelsOf("llama_rope_llama3")) {
    if (path.ends_with(".gguf")) {
      continue;
    }
    const GenerationDefaults defaults = DefaultsOf(path);
    ASSERT_EQ(defaults.end_ids.size(), 2u);
    EXPECT_EQ(defaults.end_ids[0].id, 317);
    EXPECT_EQ(defaults.end_ids[1].id, 318);
    EXPECT_EQ(defaults.end_ids[1].source, "generation_config.json: eos_token_id");
    ASSERT_EQ(defaults.sampling.size(), 2u);
    EXPECT_EQ(defaults.sampling[0].name, "temperature");
    EXPECT_EQ(defaults.sampling[0].value, 0.6);
    EXPECT_EQ(defaults.sampling[1].source, "generation_config.json: top_p");
  }
}

TEST(GenerationDefaultsTest, GgufNamesItsEndInItsKeys) {
  const GenerationDefaults defaults = DefaultsOf("tests/data/families/llama/model.gguf");
  ASSERT_EQ(defaults.end_ids.size(), 1u);
  EXPECT_EQ(defaults.end_ids[0].id, 317);
  EXPECT_EQ(defaults.end_ids[0].source, "tokenizer.ggml.eos_token_id");
  EXPECT_TRUE(defaults.sampling.empty());
}

}  // namespace
}  // namespace trireme::weights

#include "runtime/text/pre_tokenizer_families.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::text {
namespace {

using ::testing::HasSubstr;

TEST(PreTokenizerFamilies, OnlyLlama3AndTekkenNamesIgnoreMergesAndAddBos) {
  for (const char* name : {"llama-bpe", "llama3", "falcon3", "tekken"}) {
    ASSERT_TRUE(FindPreTokenizerFamily(name).ok()) << name;
    EXPECT_TRUE(FindPreTokenizerFamily(name)->traits.ignore_merges) << name;
    EXPECT_TRUE(FindPreTokenizerFamily(name)->traits.adds_bos) << name;
  }
  for (const char* name :
       {"gpt-2", "smollm", "qwen2", "dbrx", "gpt-4o", "deepseek-v3", "default"}) {
    ASSERT_TRUE(FindPreTokenizerFamily(name).ok()) << name;
    EXPECT_FALSE(FindPreTokenizerFamily(name)->traits.ignore_merges) << name;
    EXPECT_FALSE(FindPreTokenizerFamily(name)->traits.adds_bos) << name;
  }
}

TEST(PreTokenizerFamilies, RefusesUnknownNamesByName) {
  const absl::Status status = FindPreTokenizerFamily("llama-9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("llama-9"));
  EXPECT_EQ(FindPreTokenizerFamily("deepseek-llm").status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(PreTokenizerFamilies, TakesTheDefaultForAMissingName) {
  ASSERT_TRUE(FindPreTokenizerFamily("").ok());
  EXPECT_EQ(FindPreTokenizerFamily("")->names, FindPreTokenizerFamily("default")->names);
}

}  // namespace
}  // namespace trireme::text

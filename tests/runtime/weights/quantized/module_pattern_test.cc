#include "runtime/weights/quantized/module_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace trireme::weights {
namespace {

TEST(ModulePatternTest, MatchesFromTheStartAsPythonDoes) {
  const auto pattern = ModulePattern::Compile(".*layers\\.0\\.self_attn\\.(q|k)_proj");
  ASSERT_TRUE(pattern.ok());
  EXPECT_TRUE(pattern->Matches("model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(pattern->Matches("model.layers.0.self_attn.k_proj.more"));
  EXPECT_FALSE(pattern->Matches("model.layers.10.self_attn.v_proj"));
  EXPECT_FALSE(ModulePattern::Compile("layers")->Matches("model.layers"));
  EXPECT_FALSE(ModulePattern::Compile("lm_head$")->Matches("lm_head.x"));
}

TEST(ModulePatternTest, WhatIsNoExpressionIsAnError) {
  EXPECT_FALSE(ModulePattern::Compile("(").ok());
  EXPECT_FALSE(ModulePattern::Compile(std::string(20'000, 'a')).ok());
}

TEST(ModulePatternTest, AnEndlessSearchEnds) {
  const auto pattern = ModulePattern::Compile("(a+)+$");
  ASSERT_TRUE(pattern.ok());
  EXPECT_FALSE(pattern->Matches(std::string(60, 'a') + "b"));
}

}  // namespace
}  // namespace trireme::weights

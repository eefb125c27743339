#include "launcher/generation_flags.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "launcher/command_line.h"

namespace trireme::launcher {
namespace {

absl::Status Parse(const std::vector<std::string>& arguments) {
  const Subcommand subcommand = {.name = "test",
                                 .summary = "",
                                 .synopsis = "",
                                 .example = "",
                                 .flags = GenerationFlags(),
                                 .words_max = 0,
                                 .run = nullptr};
  return ParseArguments(subcommand, arguments).status();
}

TEST(GenerationFlagsTest, WhatIsNotGivenIsLeftToTheServerAndGreedyHere) {
  const absl::FlagSaver saver;
  ASSERT_TRUE(Parse({}).ok());
  const GivenSampling given = ReadGivenSampling();
  EXPECT_FALSE(given.temperature || given.top_k || given.top_p || given.min_p || given.seed);
  const auto request = ReadGenerationFlags();
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->sampling.temperature, 0);
  EXPECT_EQ(request->sampling.top_k, 0);
  EXPECT_EQ(request->sampling.top_p, 1);
  EXPECT_EQ(request->sampling.min_p, 0);
  EXPECT_EQ(request->sampling.seed, 0);
}

TEST(GenerationFlagsTest, ADefaultThatIsGivenIsGiven) {
  const absl::FlagSaver saver;
  ASSERT_TRUE(
      Parse({"--temperature", "0", "--top-k", "5", "--top-p", "1", "--min-p", "0.5", "--seed", "0"})
          .ok());
  const GivenSampling given = ReadGivenSampling();
  EXPECT_EQ(given.temperature, 0);
  EXPECT_EQ(given.top_k, 5);
  EXPECT_EQ(given.top_p, 1);
  EXPECT_EQ(given.min_p, 0.5);
  EXPECT_EQ(given.seed, 0);
  EXPECT_EQ(ReadGenerationFlags()->sampling.top_k, 5);
}

TEST(GenerationFlagsTest, ValuesOutOfRangeAreNamed) {
  const absl::FlagSaver saver;
  ASSERT_TRUE(Parse({"--top-p", "1.5"}).ok());
  EXPECT_NE(ReadGenerationFlags().status().message().find("--top-p is 1.5"), std::string::npos);
  EXPECT_FALSE(Parse({"--temperature", "warm"}).ok());
}

}  // namespace
}  // namespace trireme::launcher

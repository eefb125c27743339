#include "runtime/schedule/sequence.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::schedule {
namespace {

TEST(SequenceTest, JoinsPromptAndEmittedTokens) {
  Request request;
  request.prompt = {1, 2, 3};
  request.emitted = {4, 5};
  request.stopping.max_tokens = 9;
  const Sequence sequence(request, SequencePurpose::kGenerate);
  EXPECT_THAT(sequence.tokens(), ::testing::ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(sequence.prompt_tokens(), 3);
  EXPECT_EQ(sequence.generated_tokens(), 2);
  EXPECT_EQ(sequence.phase(), SequencePhase::kNew);
}

}  // namespace
}  // namespace trireme::schedule

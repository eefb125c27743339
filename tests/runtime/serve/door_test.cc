#include "runtime/serve/door.h"

#include <gtest/gtest.h>

#include "runtime/base/error_reason.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

ReplicaFacade Facade(FakeController* controller, const text::Tokenizer* tokenizer) {
  ReplicaFacade facade;
  facade.controller = controller;
  facade.tokenizer = tokenizer;
  facade.model.id = "m";
  facade.model.context_length = 10;
  facade.model.vocabulary_size = 259;
  return facade;
}

TEST(Door, RefusesByPhase) {
  FakeController controller({});
  Door door({}, SteadyClock());
  EXPECT_EQ(ReasonOf(door.Ready().status()), kReasonStarting);
  EXPECT_EQ(door.replica(), nullptr);
  door.Open(Facade(&controller, nullptr));
  ASSERT_TRUE(door.Ready().ok());
  EXPECT_EQ((*door.Ready())->model.id, "m");
  door.SetDraining();
  EXPECT_EQ(ReasonOf(door.Ready().status()), kReasonDraining);
  door.SetLost(WithReason(absl::UnavailableError("rank 3 on n2 died at step 17"), kReasonRankLost));
  EXPECT_EQ(ReasonOf(door.Ready().status()), kReasonRankLost);
  door.SetDraining();
  EXPECT_EQ(door.phase(), Phase::kLost);
}

// A text of more bytes than context length times the longest token cannot fit, whatever it says.
TEST(Door, BoundsPromptBytesByWhatCanFit) {
  FakeController controller({});
  const std::unique_ptr<text::Tokenizer> tokenizer = MakeByteTokenizer();
  Door door({}, SteadyClock());
  door.Open(Facade(&controller, tokenizer.get()));
  // The longest token is "<|im_start|>" with 12 bytes.
  EXPECT_EQ(door.replica()->model.limits.prompt_bytes_max, 10 * 12);
}

TEST(Door, MakesTheSameIdsFromTheSameSeed) {
  Door first({.seed = 5}, SteadyClock());
  Door second({.seed = 5}, SteadyClock());
  EXPECT_EQ(first.MakeRequestId(), second.MakeRequestId());
  EXPECT_EQ(first.MakeSeed(), second.MakeSeed());
  EXPECT_NE(first.MakeRequestId(), first.MakeRequestId());
}

TEST(Door, NotesIncidentsOfInternalErrorsOnly) {
  Door door({}, SteadyClock());
  EXPECT_EQ(door.NoteIncident(absl::InvalidArgumentError("x")), "");
  EXPECT_NE(door.NoteIncident(absl::InternalError("a bug")), "");
}

}  // namespace
}  // namespace trireme::serve

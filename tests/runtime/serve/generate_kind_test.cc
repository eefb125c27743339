#include "runtime/serve/generate_kind.h"

#include <gtest/gtest.h>

#include "runtime/base/error_reason.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

class GenerateKindTest : public testing::Test {
 protected:
  absl::StatusOr<PreparedStream> Prepare(const v1::GenerateRequest& request) {
    return kind_->Prepare(request.SerializeAsString(), facade_);
  }

  Door door_{DoorOptions{.seed = 1}, SteadyClock()};
  ServedReplica replica_;
  ReplicaFacade facade_ = replica_.Facade();
  std::unique_ptr<StreamKind> kind_ = MakeGenerateKind(&door_);
};

TEST_F(GenerateKindTest, MakesOneRequestForEachChoiceWithIdsOfTheirOwn) {
  v1::GenerateRequest request = TokenRequest(5);
  request.set_request_id("r");
  request.mutable_sampling()->set_n(2);
  const absl::StatusOr<PreparedStream> prepared = Prepare(request);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->live_id, "r");
  ASSERT_EQ(prepared->requests.size(), 2u);
  EXPECT_EQ(prepared->requests[0].id, "r#0");
  EXPECT_EQ(prepared->requests[1].id, "r#1");
  EXPECT_EQ(prepared->requests[1].choice, 1u);
  EXPECT_EQ(prepared->requests[0].sampling.seed, prepared->requests[1].sampling.seed);
}

TEST_F(GenerateKindTest, MakesAnIdAndASeedWhenNoneIsGiven) {
  const absl::StatusOr<PreparedStream> first = Prepare(TokenRequest(5));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->live_id.size(), 32u);
  kind_ = MakeGenerateKind(&door_);
  const absl::StatusOr<PreparedStream> second = Prepare(TokenRequest(5));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(first->live_id, second->live_id);
  EXPECT_NE(first->requests[0].sampling.seed, second->requests[0].sampling.seed);
}

TEST_F(GenerateKindTest, AcceptedTellsWhatIsApplied) {
  v1::GenerateRequest request = TokenRequest(5);
  request.mutable_sampling()->set_seed(UINT64_MAX);
  request.mutable_sampling()->set_temperature(0.5f);
  ASSERT_TRUE(Prepare(request).ok());
  v1::GenerateEvent event;
  ASSERT_TRUE(event.ParseFromString(kind_->AcceptedEvent(3, "")));
  EXPECT_EQ(event.seq(), 3u);
  EXPECT_EQ(event.accepted().sampling().seed(), UINT64_MAX);
  EXPECT_EQ(event.accepted().sampling().temperature(), 0.5f);
  EXPECT_EQ(event.accepted().sampling().n(), 1);
  EXPECT_EQ(event.accepted().stopping().max_tokens(), 5);
  EXPECT_EQ(event.accepted().prompt_tokens(), 3);
  EXPECT_EQ(event.accepted().model(), "fake");
  EXPECT_EQ(event.accepted().fingerprint(), "f1");
  ASSERT_TRUE(event.ParseFromString(kind_->AcceptedEvent(3, "of the replica")));
  EXPECT_EQ(event.accepted().fingerprint(), "of the replica");
}

TEST_F(GenerateKindTest, OnlyARequestThatIsNamedCanBeResumed) {
  v1::GenerateRequest request = TokenRequest(5);
  EXPECT_FALSE(Prepare(request)->resumable);
  request.set_request_id("a");
  kind_ = MakeGenerateKind(&door_);
  EXPECT_TRUE(Prepare(request)->resumable);
}

// B16: the bytes are unaltered even where the text has to wait for more of them.
TEST_F(GenerateKindTest, ChunksCarryTheBytesOfTheTokensWhenWanted) {
  v1::GenerateRequest request = TokenRequest(5);
  request.mutable_output()->set_want_bytes(true);
  request.mutable_output()->set_want_token_ids(false);
  request.mutable_output()->set_logprobs(0);
  const absl::StatusOr<PreparedStream> prepared = Prepare(request);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_TRUE(prepared->requests[0].want_logprobs);
  engine::Delta delta;
  delta.first_position = 2;
  delta.token_ids = {0xE2, 0x82};
  delta.logprobs = {-1.0f, -2.0f};
  v1::GenerateEvent event;
  ASSERT_TRUE(event.ParseFromString(kind_->TokensEvent(1, prepared->requests[0], delta)));
  EXPECT_EQ(event.chunk().bytes(), "\xE2\x82");
  EXPECT_EQ(event.chunk().text(), "");
  EXPECT_EQ(event.chunk().tokens(), 2);
  EXPECT_EQ(event.chunk().token_ids_size(), 0);
  EXPECT_EQ(event.chunk().first_position(), 2);
  ASSERT_EQ(event.chunk().logprobs_size(), 2);
  EXPECT_EQ(event.chunk().logprobs(1).logprob(), -2.0f);
}

// B3 for the door: too many bytes are refused before they are tokenized.
TEST_F(GenerateKindTest, RefusesATextThatCannotFitByItsBytes) {
  facade_.model.limits.prompt_bytes_max = 100;
  v1::GenerateRequest request;
  request.set_text(std::string(16 << 20, 'a') + "b");
  const absl::Status too_large = Prepare(request).status();
  EXPECT_EQ(ReasonOf(too_large), kReasonMessageTooLarge);
  request.set_text(std::string(15 << 20, 'a'));
  EXPECT_EQ(ReasonOf(Prepare(request).status()), kReasonPromptTooLong);
}

}  // namespace
}  // namespace trireme::serve

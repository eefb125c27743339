#include "runtime/serve/execute_kind.h"

#include <gtest/gtest.h>

#include "engine.pb.h"
#include "runtime/base/error_reason.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

class ExecuteKindTest : public testing::Test {
 protected:
  absl::StatusOr<PreparedStream> Prepare(const v1::ExecuteRequest& request) {
    kind_ = MakeExecuteKind(&door_, &fence_);
    return kind_->Prepare(request.SerializeAsString(), facade_);
  }

  static v1::ExecuteRequest Request(uint32_t attempt) {
    v1::ExecuteRequest request;
    request.set_request_id("r");
    request.set_attempt(attempt);
    request.add_token_ids(1);
    request.set_seed(5);
    return request;
  }

  Door door_{DoorOptions{}, SteadyClock()};
  AttemptFence fence_{10};
  ServedReplica replica_;
  ReplicaFacade facade_ = replica_.Facade();
  std::unique_ptr<StreamKind> kind_;
};

TEST_F(ExecuteKindTest, ContinuesWhereAnEarlierAttemptWas) {
  v1::ExecuteRequest request = Request(2);
  request.mutable_budget_left()->set_seconds(3);
  v1::ChoiceState* choice = request.add_choices();
  choice->set_choice(4);
  choice->add_emitted(8);
  choice->add_emitted(9);
  const absl::StatusOr<PreparedStream> prepared = Prepare(request);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_EQ(prepared->requests.size(), 1u);
  EXPECT_EQ(prepared->requests[0].choice, 4u);
  EXPECT_EQ(prepared->requests[0].emitted, (std::vector<int32_t>{8, 9}));
  EXPECT_EQ(prepared->requests[0].sampling.seed, 5u);
  EXPECT_EQ(prepared->budget, absl::Seconds(3));
}

TEST_F(ExecuteKindTest, RefusesAnOlderAttempt) {
  ASSERT_TRUE(Prepare(Request(2)).ok());
  EXPECT_EQ(Prepare(Request(1)).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Prepare(Request(2)).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Prepare(Request(3)).ok());
}

TEST_F(ExecuteKindTest, AnInvalidAttemptDoesNotCount) {
  v1::ExecuteRequest request = Request(9);
  request.add_token_ids(-1);
  EXPECT_FALSE(Prepare(request).ok());
  EXPECT_TRUE(Prepare(Request(1)).ok());
}

TEST_F(ExecuteKindTest, RefusesAnotherEpoch) {
  v1::ExecuteRequest request = Request(1);
  request.set_epoch(6);
  const absl::Status status = Prepare(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), kReasonResumeMismatch);
  request.set_epoch(7);
  EXPECT_TRUE(Prepare(request).ok());
}

}  // namespace
}  // namespace trireme::serve

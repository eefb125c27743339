#include "runtime/balance/failure.h"

#include <gtest/gtest.h>

#include "runtime/base/error_reason.h"

namespace trireme::balance {
namespace {

TEST(FailureTest, ADeathWithoutNoticeIsADeath) {
  EXPECT_EQ(ClassifyFailure(absl::UnavailableError("Socket closed")), FailureKind::kLost);
  EXPECT_EQ(ClassifyFailure(WithReason(absl::UnavailableError("x"), kReasonRankLost)),
            FailureKind::kLost);
}

// B-5: what counts for the breaker and what never does.
TEST(FailureTest, OnlyFaultsOfTheReplicaBlameIt) {
  for (const absl::Status& status :
       {absl::UnavailableError("x"), absl::InternalError("x"), absl::UnknownError("x")}) {
    EXPECT_TRUE(BlamesReplica(ClassifyFailure(status))) << status;
  }
  for (const absl::Status& status :
       {absl::InvalidArgumentError("x"), absl::NotFoundError("x"), absl::UnauthenticatedError("x"),
        absl::ResourceExhaustedError("x"), absl::CancelledError("x"),
        absl::DeadlineExceededError("x"), absl::AbortedError("x"),
        WithReason(absl::UnavailableError("x"), kReasonDraining),
        WithReason(absl::UnavailableError("x"), kReasonStarting)}) {
    EXPECT_FALSE(BlamesReplica(ClassifyFailure(status))) << status;
  }
}

TEST(FailureTest, TheRequestsOwnFaultIsTheSameEverywhere) {
  EXPECT_EQ(ClassifyFailure(absl::InvalidArgumentError("x")), FailureKind::kRequest);
  EXPECT_EQ(ClassifyFailure(WithReason(absl::ResourceExhaustedError("x"), kReasonMessageTooLarge)),
            FailureKind::kRequest);
  EXPECT_EQ(ClassifyFailure(WithReason(absl::FailedPreconditionError("x"), kReasonResumeMismatch)),
            FailureKind::kRefused);
  EXPECT_EQ(ClassifyFailure(WithReason(absl::ResourceExhaustedError("x"), kReasonOverloaded)),
            FailureKind::kOverloaded);
}

}  // namespace
}  // namespace trireme::balance

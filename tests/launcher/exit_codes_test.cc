#include "launcher/exit_codes.h"

#include <gtest/gtest.h>

#include "runtime/engine/damaged_model.h"

namespace trireme::launcher {
namespace {

TEST(ExitCodesTest, FilesThatAreMissingUnreadableAndUnusableDiffer) {
  EXPECT_EQ(ExitCodeOfFile(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOfFile(absl::NotFoundError("")), ExitCode::kMissingFile);
  EXPECT_EQ(ExitCodeOfFile(absl::PermissionDeniedError("")), ExitCode::kPermission);
  EXPECT_EQ(ExitCodeOfFile(absl::InvalidArgumentError("")), ExitCode::kBadCheckpoint);
}

TEST(ExitCodesTest, AReplicaSaysWhyItEnded) {
  EXPECT_EQ(ExitCodeOfReplica(absl::UnavailableError("")), ExitCode::kPeerLost);
  EXPECT_EQ(ExitCodeOfReplica(absl::DeadlineExceededError("")), ExitCode::kStalled);
  EXPECT_EQ(ExitCodeOfReplica(absl::FailedPreconditionError("")), ExitCode::kRankDisagreement);
  EXPECT_EQ(ExitCodeOfReplica(absl::ResourceExhaustedError("")), ExitCode::kDoesNotFit);
  EXPECT_EQ(ExitCodeOfReplica(absl::DataLossError("")), ExitCode::kBadCheckpoint);
  EXPECT_EQ(ExitCodeOfReplica(absl::InvalidArgumentError("")), ExitCode::kUsage);
}

TEST(ExitCodesTest, DamagedWeightsAreNoBugOfTheProgram) {
  const absl::Status status = absl::InternalError("no finite numbers");
  EXPECT_EQ(ExitCodeOfReplica(status), ExitCode::kInternal);
  EXPECT_EQ(ExitCodeOfReplica(engine::AsDamagedModel(status)), ExitCode::kBadCheckpoint);
}

// docs/errors.md promises the numbers to scripts.
TEST(ExitCodesTest, NumbersAreTheDocumentedOnes) {
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 64);
  EXPECT_EQ(static_cast<int>(ExitCode::kBadCheckpoint), 65);
  EXPECT_EQ(static_cast<int>(ExitCode::kMissingFile), 66);
  EXPECT_EQ(static_cast<int>(ExitCode::kPeerLost), 69);
  EXPECT_EQ(static_cast<int>(ExitCode::kDoesNotFit), 72);
  EXPECT_EQ(static_cast<int>(ExitCode::kPortUnavailable), 73);
  EXPECT_EQ(static_cast<int>(ExitCode::kStalled), 75);
  EXPECT_EQ(static_cast<int>(ExitCode::kRankDisagreement), 76);
}

}  // namespace
}  // namespace trireme::launcher

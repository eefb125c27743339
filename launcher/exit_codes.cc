#include "launcher/exit_codes.h"

#include "absl/status/status.h"
#include "runtime/engine/damaged_model.h"

namespace trireme::launcher {

ExitCode ExitCodeOfUsage(const absl::Status& status) {
  return status.ok() ? ExitCode::kOk : ExitCode::kUsage;
}

ExitCode ExitCodeOfFile(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kNotFound:
      return ExitCode::kMissingFile;
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kPermission;
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kDoesNotFit;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnknown:
      return ExitCode::kInputOutput;
    default:
      return ExitCode::kBadCheckpoint;
  }
}

ExitCode ExitCodeOfReplica(const absl::Status& status) {
  if (engine::IsDamagedModel(status)) {
    return ExitCode::kBadCheckpoint;
  }
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kUsage;
    case absl::StatusCode::kDataLoss:
      return ExitCode::kBadCheckpoint;
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kDoesNotFit;
    case absl::StatusCode::kUnavailable:
      return ExitCode::kPeerLost;
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kStalled;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kRankDisagreement;
    case absl::StatusCode::kAlreadyExists:
      return ExitCode::kPortUnavailable;
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kPermission;
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace trireme::launcher

#include "runtime/balance/failure.h"

#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"

namespace trireme::balance {

absl::string_view FailureKindName(FailureKind kind) {
  switch (kind) {
    case FailureKind::kLost:
      return "lost";
    case FailureKind::kFault:
      return "fault";
    case FailureKind::kSilent:
      return "silent";
    case FailureKind::kRefused:
      return "refused";
    case FailureKind::kOverloaded:
      return "overloaded";
    case FailureKind::kRequest:
      return "request";
  }
  return "";
}

FailureKind ClassifyFailure(const absl::Status& status) {
  CHECK(!status.ok());
  const absl::string_view reason = ReasonOf(status);
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      if (reason.empty() || reason == kReasonRankLost || reason == kReasonReplicaLost) {
        return FailureKind::kLost;
      }
      return FailureKind::kRefused;
    case absl::StatusCode::kResourceExhausted:
      return reason == kReasonMessageTooLarge ? FailureKind::kRequest : FailureKind::kOverloaded;
    case absl::StatusCode::kFailedPrecondition:  // meant for another epoch or another state
      return reason == kReasonResumeMismatch ? FailureKind::kRefused : FailureKind::kRequest;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:  // by the replica: our own cancels are not attempts any more
      return FailureKind::kRefused;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return FailureKind::kFault;
    default:
      return FailureKind::kRequest;
  }
}

bool BlamesReplica(FailureKind kind) {
  return kind == FailureKind::kLost || kind == FailureKind::kFault || kind == FailureKind::kSilent;
}

}  // namespace trireme::balance

#include "runtime/base/error_reason.h"

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"

namespace trireme {
namespace {

constexpr absl::string_view kReasonPayload = "trireme/reason";
constexpr absl::string_view kFieldsPayload = "trireme/fields";
constexpr absl::string_view kRetryPayload = "trireme/retry_nanoseconds";

constexpr std::array kReasons = {
    kReasonBadParameter,
    kReasonPromptTooLong,
    kReasonBadConstraint,
    kReasonConstraintTooComplex,
    kReasonBadTemplateInput,
    kReasonBadTokenId,
    kReasonFieldNotSupported,
    kReasonMethodNotSupported,
    kReasonNoCredentials,
    kReasonBadCredentials,
    kReasonScope,
    kReasonModelForbidden,
    kReasonModel,
    kReasonRequest,
    kReasonRequestId,
    kReasonExactModeUnavailable,
    kReasonResumeMismatch,
    kReasonRate,
    kReasonTokens,
    kReasonConcurrency,
    kReasonOverloaded,
    kReasonBudgetUnreachable,
    kReasonMessageTooLarge,
    kReasonStarting,
    kReasonDraining,
    kReasonRankLost,
    kReasonReplicaLost,
    kReasonNoReplica,
    kReasonExactResumeImpossible,
    kReasonPreempted,
    kReasonSlowReader,
    kReasonInQueue,
    kReasonRunning,
    kReasonByClient,
    kReasonByAdmin,
    kReasonBug,
    kReasonPoisonSuspect,
    kReasonRankDiverged,
    kReasonCheckpointCorrupt,
};

absl::string_view KnownReason(absl::string_view text) {
  for (const absl::string_view reason : kReasons) {
    if (reason == text) {
      return reason;
    }
  }
  return {};
}

// Each text is written as "<bytes>:<text>", so any byte may stand in it.
void AppendText(absl::string_view text, std::string* packed) {
  absl::StrAppend(packed, text.size(), ":", text);
}

std::optional<std::string> TakeText(absl::string_view* packed) {
  size_t bytes = 0;
  while (!packed->empty() && packed->front() >= '0' && packed->front() <= '9') {
    bytes = bytes * 10 + static_cast<size_t>(packed->front() - '0');
    packed->remove_prefix(1);
    if (bytes > packed->size()) {
      return std::nullopt;
    }
  }
  if (packed->empty() || packed->front() != ':' || packed->size() - 1 < bytes) {
    return std::nullopt;
  }
  std::string text(packed->substr(1, bytes));
  packed->remove_prefix(1 + bytes);
  return text;
}

}  // namespace

absl::Span<const absl::string_view> AllErrorReasons() { return kReasons; }

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  CHECK(!status.ok());
  CHECK(!KnownReason(reason).empty());
  status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

absl::string_view ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  return payload.has_value() ? KnownReason(std::string(*payload)) : absl::string_view();
}

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  CHECK(!status.ok());
  CHECK(delay > absl::ZeroDuration());
  status.SetPayload(kRetryPayload, absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(delay))));
  return status;
}

absl::Duration RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  int64_t nanoseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &nanoseconds)) {
    return absl::ZeroDuration();
  }
  return absl::Nanoseconds(nanoseconds);
}

absl::Status WithField(absl::Status status, absl::string_view field,
                       absl::string_view description) {
  CHECK(!status.ok());
  std::string packed;
  if (const auto payload = status.GetPayload(kFieldsPayload); payload.has_value()) {
    packed = std::string(*payload);
  }
  AppendText(field, &packed);
  AppendText(description, &packed);
  status.SetPayload(kFieldsPayload, absl::Cord(packed));
  return status;
}

std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const auto payload = status.GetPayload(kFieldsPayload);
  if (!payload.has_value()) {
    return violations;
  }
  const std::string packed(*payload);
  absl::string_view rest = packed;
  while (!rest.empty()) {
    std::optional<std::string> field = TakeText(&rest);
    std::optional<std::string> description = TakeText(&rest);
    if (!field.has_value() || !description.has_value()) {
      break;
    }
    violations.push_back({*std::move(field), *std::move(description)});
  }
  return violations;
}

}  // namespace trireme

// The machine-readable side of an error: a reason constant and the request fields at fault, carried
// as payloads of an absl::Status from wherever it arises to the service border, which turns them
// into google.rpc details (docs/errors.md lists the reasons). The text for people stays the
// status's message.
#ifndef TRIREME_RUNTIME_BASE_ERROR_REASON_H_
#define TRIREME_RUNTIME_BASE_ERROR_REASON_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace trireme {

// INVALID_ARGUMENT: fix the request.
inline constexpr absl::string_view kReasonBadParameter = "BAD_PARAMETER";
inline constexpr absl::string_view kReasonPromptTooLong = "PROMPT_TOO_LONG";
inline constexpr absl::string_view kReasonBadConstraint = "BAD_CONSTRAINT";
inline constexpr absl::string_view kReasonConstraintTooComplex = "CONSTRAINT_TOO_COMPLEX";
inline constexpr absl::string_view kReasonBadTemplateInput = "BAD_TEMPLATE_INPUT";
inline constexpr absl::string_view kReasonBadTokenId = "BAD_TOKEN_ID";
// UNIMPLEMENTED.
inline constexpr absl::string_view kReasonFieldNotSupported = "FIELD_NOT_SUPPORTED";
inline constexpr absl::string_view kReasonMethodNotSupported = "METHOD_NOT_SUPPORTED";
// UNAUTHENTICATED and PERMISSION_DENIED.
inline constexpr absl::string_view kReasonNoCredentials = "NO_CREDENTIALS";
inline constexpr absl::string_view kReasonBadCredentials = "BAD_CREDENTIALS";
inline constexpr absl::string_view kReasonScope = "SCOPE";
inline constexpr absl::string_view kReasonModelForbidden = "MODEL_FORBIDDEN";
// NOT_FOUND.
inline constexpr absl::string_view kReasonModel = "MODEL";
inline constexpr absl::string_view kReasonRequest = "REQUEST";
// ALREADY_EXISTS.
inline constexpr absl::string_view kReasonRequestId = "REQUEST_ID";
// FAILED_PRECONDITION.
inline constexpr absl::string_view kReasonExactModeUnavailable = "EXACT_MODE_UNAVAILABLE";
inline constexpr absl::string_view kReasonResumeMismatch = "RESUME_MISMATCH";
// RESOURCE_EXHAUSTED: wait, then try again.
inline constexpr absl::string_view kReasonRate = "RATE";
inline constexpr absl::string_view kReasonTokens = "TOKENS";
inline constexpr absl::string_view kReasonConcurrency = "CONCURRENCY";
inline constexpr absl::string_view kReasonOverloaded = "OVERLOADED";
inline constexpr absl::string_view kReasonBudgetUnreachable = "BUDGET_UNREACHABLE";
inline constexpr absl::string_view kReasonMessageTooLarge = "MESSAGE_TOO_LARGE";
// UNAVAILABLE: try again, here or elsewhere.
inline constexpr absl::string_view kReasonStarting = "STARTING";
inline constexpr absl::string_view kReasonDraining = "DRAINING";
inline constexpr absl::string_view kReasonRankLost = "RANK_LOST";
inline constexpr absl::string_view kReasonReplicaLost = "REPLICA_LOST";
inline constexpr absl::string_view kReasonNoReplica = "NO_REPLICA";
inline constexpr absl::string_view kReasonExactResumeImpossible = "EXACT_RESUME_IMPOSSIBLE";
// ABORTED.
inline constexpr absl::string_view kReasonPreempted = "PREEMPTED";
inline constexpr absl::string_view kReasonSlowReader = "SLOW_READER";
// DEADLINE_EXCEEDED.
inline constexpr absl::string_view kReasonInQueue = "IN_QUEUE";
inline constexpr absl::string_view kReasonRunning = "RUNNING";
// CANCELLED.
inline constexpr absl::string_view kReasonByClient = "BY_CLIENT";
inline constexpr absl::string_view kReasonByAdmin = "BY_ADMIN";
// INTERNAL.
inline constexpr absl::string_view kReasonBug = "BUG";
inline constexpr absl::string_view kReasonPoisonSuspect = "POISON_SUSPECT";
inline constexpr absl::string_view kReasonRankDiverged = "RANK_DIVERGED";
// DATA_LOSS.
inline constexpr absl::string_view kReasonCheckpointCorrupt = "CHECKPOINT_CORRUPT";

// Every constant above, in that order.
absl::Span<const absl::string_view> AllErrorReasons();

// The same status with the reason attached; `reason` is one of the constants and `status` is not
// OK.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// The attached reason, or empty when there is none. The view lives for ever.
absl::string_view ReasonOf(const absl::Status& status);

// The same status with the advice to try again after `delay`, which is more than zero.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// The attached advice, or zero when there is none.
absl::Duration RetryDelayOf(const absl::Status& status);

// One field of a request that is at fault.
struct FieldViolation {
  std::string field;        // by proto path: "sampling.top_p", "prompt.token_ids[3]"
  std::string description;  // the value found and the values wanted
};

// The same status with one more violation attached; call it once for each field at fault.
absl::Status WithField(absl::Status status, absl::string_view field, absl::string_view description);

// The attached violations in the order of WithField.
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_ERROR_REASON_H_

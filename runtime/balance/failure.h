// What the end of an attempt with an error means for its request and its replica: one table from
// statuses (docs/errors.md) to kinds.
#ifndef TRIREME_RUNTIME_BALANCE_FAILURE_H_
#define TRIREME_RUNTIME_BALANCE_FAILURE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace trireme::balance {

enum class FailureKind : uint8_t {
  kLost,        // the replica, or a rank of it, died under the attempt
  kFault,       // it answered, but wrongly: its own bug, or answers that cannot be
  kSilent,      // it brought nothing for too long
  kRefused,     // it did not take the work, or gave it back: starting, draining, pre-empted
  kOverloaded,  // it is full
  kRequest,     // the request's own fault; every replica would say the same
};

absl::string_view FailureKindName(FailureKind kind);

// `status` is not OK. Unavailable without a reason is kLost: some deaths give no notice. A
// kSilent is never the meaning of a status.
FailureKind ClassifyFailure(const absl::Status& status);

// Counts for the breaker of the replica. A client's mistake, a full queue or a drain never does.
bool BlamesReplica(FailureKind kind);

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_FAILURE_H_

// What the balancer's core must know of a request. Sampling, stop strings and text stay with the
// caller, who sends them along with each attempt.
#ifndef TRIREME_RUNTIME_BALANCE_REQUEST_FACTS_H_
#define TRIREME_RUNTIME_BALANCE_REQUEST_FACTS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace trireme::balance {

// Names of the core for what lives in it. Never used twice within a core.
using RequestKey = uint64_t;
using ReplicaKey = uint32_t;

// Bands of the queue, the most urgent one first.
enum class Priority : uint8_t { kInteractive, kStandard, kBatch };
inline constexpr int kPriorities = 3;

// What to do when the replica of a running request is lost.
enum class DisruptionPolicy : uint8_t {
  kResume,       // go on elsewhere with the same tokens; wait for a replica that can
  kExactOrFail,  // the same, but do not wait: fail when none can continue exactly now
  kFail,         // fail once a token was delivered; before that nobody notices
};

struct RequestFacts {
  absl::string_view tenant;          // "" is a tenant too; read during the call only
  absl::Span<const int32_t> prompt;  // at least one token; read during the call only
  // Tokens that count as delivered already: a client that comes back from another balancer.
  absl::Span<const int32_t> emitted;
  absl::string_view fingerprint;  // of what computed `emitted`; empty: any will do
  int64_t max_tokens = 1;         // generated ones over all attempts, those in `emitted` included
  absl::Time deadline = absl::InfiniteFuture();
  Priority priority = Priority::kStandard;
  DisruptionPolicy disruption_policy = DisruptionPolicy::kResume;
  bool explain = false;  // tell in StartAttempt why this replica
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_REQUEST_FACTS_H_

// Which replica gets a request: a pure function of what is known of the replicas. It predicts the
// time to the first token of each, prefers the owner of the prompt's prefix where that costs
// little, keeps every replica within a bound of the mean load (Mirrokni, Thorup, Zadimoghaddam:
// Consistent hashing with bounded loads; 2018), and now and then tries another one, so that a wrong
// belief does not stay. When reports are old it takes the less loaded of two drawn by chance.
#ifndef TRIREME_RUNTIME_BALANCE_PICK_H_
#define TRIREME_RUNTIME_BALANCE_PICK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/balance/balancer_options.h"
#include "runtime/balance/request_facts.h"
#include "runtime/balance/seeded_random.h"

namespace trireme::balance {

// One serving replica, as of now and for one request.
struct Candidate {
  ReplicaKey key = 0;
  uint64_t name_hash = 0;
  bool usable = true;  // this request may go there now; others count for the mean only
  bool stale = false;  // no recent report: only what this balancer itself has sent is known
  double weight = 1;   // share of the work, in (0, 1]
  int64_t tokens_in_flight = 0;          // load of this balancer's attempts
  int64_t queued_tokens = 0;             // to be computed before a newcomer's first token
  int64_t waiting_requests = 0;          // for a place in its batch
  int64_t running_sequences = 0;         // in its batch
  int64_t cached_tokens = 0;             // of this prompt, as far as one can guess
  double prefill_tokens_per_second = 0;  // 0: not known
  absl::Duration step_time;
};

// What a pick needs of the request.
struct PickRequest {
  uint64_t affinity = 0;
  int64_t prompt_tokens = 0;  // and emitted ones: what must be in the cache before the first token
  int64_t load_tokens = 0;    // that it adds to tokens_in_flight
  int64_t expected_output_tokens = 128;
  bool explain = false;
};

enum class PickReason : uint8_t {
  kOnly,
  kAffinity,
  kFastest,
  kExplored,
  kTwoChoices,
  kLeastLoaded
};

absl::string_view PickReasonName(PickReason reason);

struct Picked {
  size_t index = 0;  // into the candidates
  PickReason reason = PickReason::kOnly;
  std::string explanation;  // when asked for
};

// Time to the first token that `candidate` would need.
absl::Duration PredictFirstToken(const PickRequest& request, const Candidate& candidate);

// Nothing when no candidate is usable.
std::optional<Picked> Pick(const PickRequest& request, absl::Span<const Candidate> candidates,
                           const PickOptions& options, SeededRandom* random);

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_PICK_H_

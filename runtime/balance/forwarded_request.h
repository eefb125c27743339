// One live request in the balancer's core: what was asked, where it stands, what it has emitted.
#ifndef TRIREME_RUNTIME_BALANCE_FORWARDED_REQUEST_H_
#define TRIREME_RUNTIME_BALANCE_FORWARDED_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/balance/action.h"
#include "runtime/balance/admission.h"
#include "runtime/balance/prefix_affinity.h"
#include "runtime/balance/quarantine.h"
#include "runtime/balance/request_facts.h"
#include "runtime/balance/token_log.h"

namespace trireme::balance {

// The current or last try of a request on a replica.
struct Attempt {
  uint32_t number = 0;  // 0: none yet
  ReplicaKey replica = 0;
  uint64_t epoch = 0;
  std::string fingerprint;
  absl::Time started = absl::InfinitePast();
  uint64_t reports_seen = 0;  // of its replica, when it was sent
  bool accepted = false;
  bool probe = false;           // of a half-open breaker
  int64_t first_position = 0;   // tokens that were emitted before it
  int64_t uncached_tokens = 0;  // as guessed when it was sent
  int64_t guessed_tokens = 0;   // of the prompt, taken for cached there
  int64_t load_tokens = 0;
};

enum class RequestPhase : uint8_t {
  kQueued,   // in the admission queue: no attempt yet
  kRunning,  // an attempt is current
  kMoving,   // its attempt failed, here or at another balancer; it waits for another one
};

struct ForwardedRequest {
  RequestKey key = 0;
  RequestPhase phase = RequestPhase::kQueued;
  Admission::Waiting waiting;  // its place while kQueued; tenant and priority always
  PromptHashes hashes;
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;
  absl::Time deadline;
  DisruptionPolicy policy = DisruptionPolicy::kResume;
  bool explain = false;

  TokenLog log;
  int64_t delivered_before = 0;  // tokens of the log that came with the request
  bool needs_fingerprint = false;
  std::string fingerprint;  // of what emitted the log

  Attempt attempt;
  bool accept_told = false;
  absl::Time last_progress = absl::InfinitePast();  // of the attempt: sent, accepted or a token
  int retries = 0;
  int resumes = 0;
  int refusals = 0;
  Suspicion suspicion;
  bool charge_to_budget = false;  // the next attempt
  absl::Time not_before = absl::InfinitePast();
  absl::Time patience_ends = absl::InfiniteFuture();  // while it waits
  std::vector<ReplicaKey> avoided;

  absl::Time waits_since = absl::InfinitePast();
  absl::Time gap_since = absl::InfinitePast();  // InfinitePast: no gap is open
  RequestStory story;
  absl::Time timer = absl::InfiniteFuture();

  ForwardedRequest(absl::Span<const int32_t> emitted, int64_t max_tokens_in)
      : max_tokens(max_tokens_in), log(emitted, max_tokens_in) {}

  int64_t delivered() const { return log.size() - delivered_before; }
  int64_t progress() const { return log.size() - attempt.first_position; }
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_FORWARDED_REQUEST_H_

// What the balancer's core wants done: values that the caller carries out, in order. The core is
// told of the outcome by further events; it never waits.
#ifndef TRIREME_RUNTIME_BALANCE_ACTION_H_
#define TRIREME_RUNTIME_BALANCE_ACTION_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/balance/request_facts.h"

namespace trireme::balance {

// The request waits for a replica. Told when it starts to wait, not again when others overtake it.
struct QueueRequest {
  RequestKey request = 0;
  int64_t position = 0;  // requests that would go before it, at this moment
};

// Send the request with `emitted` to the replica. Answers count only with this attempt number.
struct StartAttempt {
  RequestKey request = 0;
  ReplicaKey replica = 0;
  uint32_t attempt = 0;          // the fencing number, from 1
  uint64_t epoch = 0;            // of the replica, for it to refuse when it has been restarted
  std::vector<int32_t> emitted;  // by earlier attempts; the replica goes on after them
  std::string explanation;       // when asked for: candidates, scores, reason
};

// Nobody wants this attempt's answers any more. Nothing comes of it when it has ended already.
struct CancelAttempt {
  RequestKey request = 0;
  ReplicaKey replica = 0;
  uint32_t attempt = 0;
};

// The replica has begun to compute; the first of all attempts to do so.
struct AcceptRequest {
  RequestKey request = 0;
  ReplicaKey replica = 0;
};

// These tokens of the OnTokens call at hand are new to the client: hand them on.
struct DeliverTokens {
  RequestKey request = 0;
  int64_t first_position = 0;
  int64_t tokens = 0;
};

// One time that a request had to move.
struct Disruption {
  absl::string_view reason;  // of base/error_reason.h; lives for ever
  ReplicaKey from = 0;
  ReplicaKey to = 0;
  absl::Duration gap;  // between the last token before and the first one after
};

// What became of a request, for its last message and for whoever asks why.
struct RequestStory {
  uint32_t attempts = 0;
  absl::Duration queued;          // in the balancer's queue, all waits together
  int64_t recomputed_tokens = 0;  // emitted tokens that later attempts computed once more
  std::vector<Disruption> disruptions;
};

// The current attempt finished and every token was delivered. The request is forgotten.
struct FinishRequest {
  RequestKey request = 0;
  RequestStory story;
};

// The request ends with this error, which has a reason and, where a retry makes sense, a delay
// (base/error_reason.h). The request is forgotten.
struct FailRequest {
  RequestKey request = 0;
  absl::Status status;
  RequestStory story;
};

using Action = std::variant<QueueRequest, StartAttempt, CancelAttempt, AcceptRequest, DeliverTokens,
                            FinishRequest, FailRequest>;
using Actions = std::vector<Action>;

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_ACTION_H_

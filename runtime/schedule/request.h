// One request as the scheduler sees it: token ids in, limits and options; text stays outside.
#ifndef TRIREME_RUNTIME_SCHEDULE_REQUEST_H_
#define TRIREME_RUNTIME_SCHEDULE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/sample/sampling_options.h"
#include "runtime/sample/stop_condition.h"

namespace trireme::schedule {

using sample::FinishReason;
using sample::StoppingOptions;

// Which requests wait for which. Only a balancer looks at it: a lone replica takes them in order.
enum class Priority : uint8_t { kBatch, kStandard, kInteractive };

// What a client wants when the replica that answers is lost. Only a balancer can do more than fail.
enum class DisruptionPolicy : uint8_t {
  kResume,       // go on elsewhere, exactly where that can be promised
  kExactOrFail,  // go on only where the same tokens follow
  kFail,
};

struct Delivery {
  Priority priority = Priority::kStandard;
  DisruptionPolicy disruption_policy = DisruptionPolicy::kResume;
  std::string tenant;    // empty: the one that everybody belongs to
  bool explain = false;  // tell why a replica was chosen
};

struct Request {
  std::string id;               // unique among live requests
  std::vector<int32_t> prompt;  // 1 .. context - 1 token ids, each inside the vocabulary
  std::vector<int32_t>
      emitted;  // tokens that an earlier attempt has already generated; they are not emitted again
  sample::SamplingOptions sampling;
  uint32_t choice = 0;  // index among the n choices of one client request; part of the random key
  StoppingOptions stopping;
  absl::Time deadline = absl::InfiniteFuture();  // on the controller's Clock
  bool want_text = true;       // text deltas are made only when somebody reads them
  bool want_logprobs = false;  // the chosen token's log-probability
  Delivery delivery;           // the scheduler does not read it
};

// What bounds a request, fixed at start.
struct RequestLimits {
  int64_t vocabulary = 0;
  int64_t context = 0;  // positions of one sequence
  int64_t blocks = 0;   // KV blocks of the replica
};

// KV blocks that the request may come to need: the last generated token is never computed.
int64_t BlocksAtMost(const Request& request, int64_t context);

// InvalidArgument (BAD_TOKEN_ID) naming the first id outside [0, vocabulary) as "field[index]".
absl::Status ValidateTokenIds(absl::Span<const int32_t> token_ids, absl::string_view field,
                              int64_t vocabulary);

// InvalidArgument naming everything that is out of range, with reason and fields:
// PROMPT_TOO_LONG when prompt and emitted tokens leave no position of the context or the cache free
// for a new token or the request can never fit the cache, BAD_TOKEN_ID, BAD_PARAMETER.
absl::Status ValidateRequest(const Request& request, const RequestLimits& limits);

}  // namespace trireme::schedule

#endif  // TRIREME_RUNTIME_SCHEDULE_REQUEST_H_

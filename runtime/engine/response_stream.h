// The mailbox between the engine thread and whoever reads one request's tokens (a gRPC reactor, the
// command line). The engine never waits for a reader: what is not read yet is coalesced, bounded by
// the request's max_tokens.
//
// Thread rule: Accept, Push and Finish are called by one thread at a time, the engine's; Take,
// Cancel and SetListener by any thread.
#ifndef TRIREME_RUNTIME_ENGINE_RESPONSE_STREAM_H_
#define TRIREME_RUNTIME_ENGINE_RESPONSE_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/mutex.h"
#include "runtime/schedule/request.h"

namespace trireme::engine {

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;      // of the prompt, not computed again
  int64_t generated_tokens = 0;   // emitted by this attempt
  int64_t recomputed_tokens = 0;  // after a preemption
};

struct Timings {
  absl::Duration queue;
  absl::Duration first_token;  // from arrival
  absl::Duration total;
};

// A stream that went on elsewhere, seen from the reader: no token for `gap`.
struct Disruption {
  std::string reason;  // of error_reason.h
  absl::Duration gap;
  std::string from_replica;
  std::string to_replica;
};

// Which replicas worked for a request, where a balancer stands between.
struct Route {
  int32_t attempts = 0;     // 0: no balancer
  std::string replica;      // the last one
  std::string explanation;  // why, when asked for
  std::vector<Disruption> disruptions;
};

// How a stream ended: OK with a reason, or a status with no reason.
struct Ending {
  absl::Status status;
  schedule::FinishReason reason = schedule::FinishReason::kEos;
  std::string stop_string;     // which one, for kStopString
  int32_t stop_token_id = -1;  // which one, for kStopToken and kEos
  Usage usage;
  Timings timings;
  Route route;
};

// Everything that came since the last Take. Positions count generated tokens from 0, emitted ones
// of earlier attempts included.
struct Delta {
  bool accepted = false;       // true once: the request left the queue
  std::string fingerprint;     // comes with `accepted`; empty: the replica's own
  int64_t first_position = 0;  // of token_ids[0]
  std::vector<int32_t> token_ids;
  std::vector<float> logprobs;  // [token_ids] when wanted, else empty
  std::string text;  // valid UTF-8; lags behind token_ids while a character or a stop string may be
                     // incomplete
  size_t text_tail_bytes = 0;  // the last bytes of `text`: what came with the ending, after the
                               // last token's own
  std::optional<Ending> ending;
};

class ResponseStream {
 public:
  // `expected_tokens` reserves memory, so that steps allocate nothing; beyond some thousands memory
  // grows with what is really unread.
  explicit ResponseStream(int64_t expected_tokens);

  // Called (by the engine thread, no lock held) each time there is something new to Take. Set
  // before Submit.
  void SetListener(std::function<void()> listener);

  // Swaps out what has come (give the same Delta back, so that its memory is used again); false
  // when there is nothing. Nothing follows a Delta with an ending.
  bool Take(Delta* delta);

  // Blocks until Take would return something, or the ending has been taken. For command-line
  // readers and tests, never for reactors.
  void Wait();

  // The reader went away; the engine frees the sequence at its next step. The stream still ends
  // (CANCELLED).
  void Cancel();
  bool cancelled() const;

  // Engine side.
  // The request left the queue; its first new token has position `first_position`.
  void Accept(int64_t first_position = 0, absl::string_view fingerprint = {});
  void Push(int32_t token_id, std::optional<float> logprob, absl::string_view text);
  // Several at once; `logprobs` is empty or one for each token.
  void PushAll(absl::Span<const int32_t> token_ids, absl::Span<const float> logprobs,
               absl::string_view text);
  void Finish(Ending ending, absl::string_view text_tail);

 private:
  void Reserve(Delta* delta) const;
  void Notify();

  const size_t reserved_tokens_;
  std::function<void()> listener_;
  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  ConditionVariable news_;
  Delta pending_ ABSL_GUARDED_BY(mutex_);
  bool has_pending_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_position_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_RESPONSE_STREAM_H_

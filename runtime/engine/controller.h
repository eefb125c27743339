// The controller of a replica: takes requests, schedules steps, hands out tokens. It holds all
// state but weights and KV. One engine thread owns scheduler, block pool and sequences (no locks);
// everything enters through one bounded queue.
#ifndef TRIREME_RUNTIME_ENGINE_CONTROLLER_H_
#define TRIREME_RUNTIME_ENGINE_CONTROLLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/engine/pipeline.h"
#include "runtime/engine/response_stream.h"
#include "runtime/engine/step.h"
#include "runtime/schedule/request.h"
#include "runtime/text/tokenizer.h"

namespace trireme::engine {

struct ControllerOptions {
  StepLimits limits;
  int32_t queued_requests_max =
      1024;  // waiting for a place; more are refused with RESOURCE_EXHAUSTED (OVERLOADED)
  int64_t vocabulary = 0;
  absl::Duration stall_timeout =
      absl::Seconds(30);  // work waiting and no step finished for so long ends the replica
};

// A snapshot for load reports and status pages.
struct Load {
  int64_t running_sequences = 0;
  int64_t waiting_requests = 0;
  int64_t queued_tokens = 0;   // prompt tokens not computed yet
  int64_t running_tokens = 0;  // positions held in KV
  int64_t blocks_total = 0;
  int64_t blocks_free = 0;
  uint64_t step = 0;  // steps finished
  double prefill_tokens_per_second = 0;
  absl::Duration step_time_p50;
  absl::Duration step_time_p99;
  bool draining = false;
  int64_t preemptions = 0;
};

class Controller {
 public:
  // `pipeline`, `tokenizer` (null: no text, no stop strings, no end-of-generation set) and `clock`
  // must outlive it.
  static absl::StatusOr<std::unique_ptr<Controller>> Create(const ControllerOptions& options,
                                                            Pipeline* pipeline,
                                                            const text::Tokenizer* tokenizer,
                                                            Clock* clock);
  virtual ~Controller() = default;

  // Any thread; never blocks. The stream gets exactly one ending if this returns OK, and nothing
  // otherwise. Refusals: InvalidArgument (prompt empty, token id outside the vocabulary, prompt
  // longer than the context, max_tokens < 1), AlreadyExists (a live request has this id),
  // ResourceExhausted (queue full), Unavailable (draining, lost).
  virtual absl::Status Submit(schedule::Request request,
                              std::shared_ptr<ResponseStream> stream) = 0;

  // Ends the named request (CANCELLED) within one step; false when no live request has this id. Any
  // thread.
  virtual bool Cancel(absl::string_view request_id) = 0;

  // Logits of every position of one sequence, float32 [tokens, vocabulary], computed in chunks
  // through the same steps. `on_rows` is called on the engine thread with consecutive rows. Blocks
  // the caller; not for reactors.
  virtual absl::Status Score(
      const std::vector<int32_t>& token_ids,
      std::function<void(int64_t first_row, absl::Span<const float> logits)> on_rows) = 0;

  virtual Load load() const = 0;

  // No new requests from now on (UNAVAILABLE, DRAINING); `on_idle` is called once when the last one
  // has ended. Any thread.
  virtual void Drain(std::function<void()> on_idle) = 0;

  // Ends every stream with `reason` and the engine thread; idempotent, any thread. Returns when all
  // streams have ended.
  virtual void Stop(const absl::Status& reason) = 0;
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_CONTROLLER_H_

// One request from Submit to its ending: the scheduler's sequence, the reader's stream and what
// turns tokens into output between them.
//
// Thread rule: made by the submitting thread, then the engine thread's; RequestCancel by any thread
// while the mailbox knows the request.
#ifndef TRIREME_RUNTIME_ENGINE_LIVE_REQUEST_H_
#define TRIREME_RUNTIME_ENGINE_LIVE_REQUEST_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/response_stream.h"
#include "runtime/sample/stop_condition.h"
#include "runtime/schedule/sequence.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"

namespace trireme::engine {

// The caller of Score waits for `done`.
struct ScoreJob {
  std::function<void(int64_t first_row, absl::Span<const float> logits)> on_rows;
  absl::Status status;  // set before `done`
  Notification done;
};

class LiveRequest : public schedule::Sequence {
 public:
  // A request that passed ValidateRequest. Tokens emitted by an earlier attempt are replayed
  // through stop condition and detokenizer here. FailedPrecondition (RESUME_MISMATCH) when those
  // tokens go on after a point where the request ends.
  static absl::StatusOr<std::unique_ptr<LiveRequest>> CreateGenerate(
      schedule::Request request, std::shared_ptr<ResponseStream> stream,
      const text::Tokenizer* tokenizer, int64_t context, absl::Time now);

  // `job` outlives its `done`.
  static std::unique_ptr<LiveRequest> CreateScore(std::string id, std::vector<int32_t> token_ids,
                                                  ScoreJob* job, absl::Time now);

  // Submitted, then seen as a batch member for the first time.
  void Accept(absl::Time now);
  bool accepted() const { return accepted_; }

  // The emitted tokens already complete the request: nothing is to be computed.
  bool ended_on_arrival() const { return arrival_decision_.stop; }
  void FinishOnArrival(absl::Time now);

  // A generated token: hands it and its text to the reader. True when the request ends with it;
  // Finish follows then.
  bool TakeToken(int32_t token_id, float logprob, absl::Time now);
  // Ends the stream as TakeToken decided.
  void Finish(absl::Time now);

  // Ends stream or job with an error.
  void FinishWithError(const absl::Status& status, absl::Time now);

  // Logits of consecutive rows; true when they were the last ones.
  bool TakeLogits(int64_t first_row, absl::Span<const float> logits, int64_t vocabulary);
  void FinishScore();

  void RequestCancel() { cancel_requested_.store(true, std::memory_order_relaxed); }
  bool cancelled() const {
    return cancel_requested_.load(std::memory_order_relaxed) ||
           (stream_ != nullptr && stream_->cancelled());
  }

 private:
  LiveRequest(schedule::Request request, schedule::SequencePurpose purpose,
              const text::Tokenizer* tokenizer, absl::Time now);
  absl::Status Replay();
  sample::StopDecision Decide(int32_t token_id);
  Usage usage() const;
  Timings timings(absl::Time now) const;

  const text::Tokenizer* const tokenizer_;
  const absl::Time arrival_time_;
  std::shared_ptr<ResponseStream> stream_;
  std::optional<sample::StopCondition> stop_;     // kGenerate only
  std::optional<text::Detokenizer> detokenizer_;  // where text is made
  sample::StopDecision arrival_decision_;
  sample::StopDecision decision_;  // of the latest token
  int32_t latest_token_id_ = -1;
  std::string shown_;         // text of the latest token that may be shown
  int64_t emitted_here_ = 0;  // by this attempt
  bool accepted_ = false;
  absl::Time accepted_time_;
  std::optional<absl::Time> first_token_time_;
  ScoreJob* job_ = nullptr;
  int64_t scored_rows_ = 0;
  std::atomic<bool> cancel_requested_{false};
};

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_LIVE_REQUEST_H_

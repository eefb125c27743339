#include "runtime/engine/live_request.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/status_macros.h"

namespace trireme::engine {
namespace {

// Room for the text of one token and what a stop string held back.
constexpr size_t kShownBytes = 512;

}  // namespace

LiveRequest::LiveRequest(schedule::Request request, schedule::SequencePurpose purpose,
                         const text::Tokenizer* tokenizer, absl::Time now)
    : Sequence(std::move(request), purpose), tokenizer_(tokenizer), arrival_time_(now) {}

absl::StatusOr<std::unique_ptr<LiveRequest>> LiveRequest::CreateGenerate(
    schedule::Request request, std::shared_ptr<ResponseStream> stream,
    const text::Tokenizer* tokenizer, int64_t context, absl::Time now) {
  auto live = std::unique_ptr<LiveRequest>(
      new LiveRequest(std::move(request), schedule::SequencePurpose::kGenerate, tokenizer, now));
  live->stream_ = std::move(stream);
  live->stop_.emplace(live->request().stopping, live->prompt_tokens(), context);
  live->shown_.reserve(kShownBytes);
  if (tokenizer != nullptr && (live->request().want_text || live->stop_->has_stop_strings())) {
    live->detokenizer_.emplace(tokenizer, text::SpecialTokenDisplay::kHide,
                               text::TextStart::kContinuation);
  }
  RETURN_IF_ERROR(live->Replay());
  return live;
}

std::unique_ptr<LiveRequest> LiveRequest::CreateScore(std::string id,
                                                      std::vector<int32_t> token_ids, ScoreJob* job,
                                                      absl::Time now) {
  schedule::Request request;
  request.id = std::move(id);
  request.prompt = std::move(token_ids);
  auto live = std::unique_ptr<LiveRequest>(
      new LiveRequest(std::move(request), schedule::SequencePurpose::kScore, nullptr, now));
  live->job_ = job;
  return live;
}

// What these tokens show was shown by the attempt that drew them.
absl::Status LiveRequest::Replay() {
  const std::vector<int32_t>& emitted = request().emitted;
  for (size_t index = 0; index < emitted.size(); ++index) {
    const sample::StopDecision decision = Decide(emitted[index]);
    if (!decision.emit || (decision.stop && index + 1 < emitted.size())) {
      const std::string text = absl::StrFormat(
          "emitted[%d] is token %d, where the request ends (%s), but it is one of %d tokens said "
          "to be emitted; the attempt had other stopping options or another model",
          index, emitted[index], sample::FinishReasonName(decision.reason), emitted.size());
      return WithField(WithReason(absl::FailedPreconditionError(text), kReasonResumeMismatch),
                       absl::StrFormat("emitted[%d]", index), text);
    }
    arrival_decision_ = decision;
  }
  shown_.clear();
  return absl::OkStatus();
}

sample::StopDecision LiveRequest::Decide(int32_t token_id) {
  const bool end_of_generation = tokenizer_ != nullptr && tokenizer_->IsEndOfGeneration(token_id);
  shown_.clear();
  if (!detokenizer_.has_value() || stop_->EndsBefore(token_id, end_of_generation)) {
    return stop_->Append(token_id, end_of_generation, {}, &shown_);
  }
  return stop_->Append(token_id, end_of_generation, detokenizer_->Append(token_id), &shown_);
}

void LiveRequest::Accept(absl::Time now) {
  accepted_ = true;
  accepted_time_ = now;
  if (stream_ != nullptr) {
    stream_->Accept(static_cast<int64_t>(request().emitted.size()));
  }
}

void LiveRequest::FinishOnArrival(absl::Time now) {
  Accept(now);
  decision_ = arrival_decision_;
  Finish(now);
}

bool LiveRequest::TakeToken(int32_t token_id, float logprob, absl::Time now) {
  decision_ = Decide(token_id);
  latest_token_id_ = token_id;
  if (decision_.emit) {
    ++emitted_here_;
    if (!first_token_time_.has_value()) {
      first_token_time_ = now;
    }
    const bool want_text = request().want_text;
    stream_->Push(token_id, request().want_logprobs ? std::optional<float>(logprob) : std::nullopt,
                  want_text ? absl::string_view(shown_) : absl::string_view());
    shown_.clear();
  }
  return decision_.stop;
}

void LiveRequest::Finish(absl::Time now) {
  CHECK(decision_.stop);
  Ending ending{.status = {},
                .reason = decision_.reason,
                .stop_string = {},
                .stop_token_id = decision_.emit ? -1 : latest_token_id_,
                .usage = usage(),
                .timings = timings(now)};
  if (decision_.reason == sample::FinishReason::kStopString) {
    ending.stop_string = stop_->stop_string(decision_.stop_string_index);
  } else if (detokenizer_.has_value()) {
    shown_ += detokenizer_->Finish();
  }
  stream_->Finish(std::move(ending),
                  request().want_text ? absl::string_view(shown_) : absl::string_view());
}

void LiveRequest::FinishWithError(const absl::Status& status, absl::Time now) {
  CHECK(!status.ok());
  if (job_ != nullptr) {
    job_->status = status;
    job_->done.Notify();
    job_ = nullptr;
    return;
  }
  stream_->Finish({.status = status,
                   .reason = sample::FinishReason::kEos,
                   .stop_string = {},
                   .stop_token_id = -1,
                   .usage = usage(),
                   .timings = timings(now)},
                  {});
}

bool LiveRequest::TakeLogits(int64_t first_row, absl::Span<const float> logits,
                             int64_t vocabulary) {
  CHECK_EQ(first_row, scored_rows_);
  scored_rows_ += static_cast<int64_t>(logits.size()) / vocabulary;
  job_->on_rows(first_row, logits);
  return scored_rows_ == token_count();
}

void LiveRequest::FinishScore() {
  job_->done.Notify();
  job_ = nullptr;
}

Usage LiveRequest::usage() const {
  return {.prompt_tokens = prompt_tokens(),
          .cached_tokens = 0,
          .generated_tokens = emitted_here_,
          .recomputed_tokens = recomputed_tokens()};
}

Timings LiveRequest::timings(absl::Time now) const {
  return {.queue = (accepted_ ? accepted_time_ : now) - arrival_time_,
          .first_token = first_token_time_.value_or(now) - arrival_time_,
          .total = now - arrival_time_};
}

}  // namespace trireme::engine

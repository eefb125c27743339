#include "runtime/engine/controller_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/damaged_model.h"
#include "runtime/engine/plan_builder.h"
#include "runtime/model/row_faults.h"

namespace trireme::engine {
namespace {

using schedule::BatchEntry;
using schedule::Sequence;
using schedule::SequencePhase;
using schedule::SequencePurpose;

// Every sequence of the scheduler was made by Submit or Score.
LiveRequest* LiveOf(Sequence* sequence) { return static_cast<LiveRequest*>(sequence); }

schedule::SchedulerLimits LimitsOf(const ControllerOptions& options, int depth) {
  return {.tokens = options.limits.tokens,
          .sequences = options.limits.sequences,
          .logit_rows = options.limits.logit_rows,
          .context = options.limits.context,
          .blocks = options.limits.blocks,
          .plans_in_flight_max = depth};
}

absl::Status Bug(const std::string& text) {
  return WithReason(absl::InternalError(text), kReasonBug);
}

// A place of model/row_faults.h, for people.
std::string PlaceName(int32_t place) {
  return place <= model::kFaultInEmbedding ? "the embedding"
         : place >= model::kFaultInOutput  ? "the output matrix"
                                           : absl::StrCat("layer ", place);
}

absl::Status WithDefaultReason(const absl::Status& status) {
  if (!ReasonOf(status).empty()) {
    return status;
  }
  return WithReason(status, absl::IsUnavailable(status) ? kReasonRankLost : kReasonBug);
}

}  // namespace

ControllerLoop::ControllerLoop(const ControllerOptions& options, Pipeline* pipeline, Clock* clock,
                               ControllerMailbox* mailbox, LoadBoard* board)
    : options_(options),
      pipeline_(pipeline),
      clock_(clock),
      mailbox_(mailbox),
      board_(board),
      scheduler_(LimitsOf(options, pipeline->depth())),
      plans_(static_cast<size_t>(pipeline->depth())),
      now_(clock->Now()),
      progress_time_(now_) {
  plan_.Reserve(options.limits);
  for (PlanInFlight& plan : plans_) {
    plan.batch.entries.reserve(static_cast<size_t>(options.limits.sequences));
  }
  Publish();
}

void ControllerLoop::Run() {
  absl::Status reason;
  while (reason.ok()) {
    mailbox_->Wait(TimeToNextEvent(), &mail_);
    now_ = clock_->Now();
    reason = TakeResults();
    TakeRequests();
    if (reason.ok()) {
      reason = mail_.stop_reason;
    }
    if (reason.ok()) {
      RemoveCancelled();
      RemoveExpired();
      reason = CheckStall();
    }
    if (reason.ok()) {
      reason = SendPlans();
    }
    DestroyEnded();
    Publish();
    if (live_.empty()) {
      CallIdleCallbacks();
    }
  }
  Finish(reason);
}

absl::Status ControllerLoop::TakeResults() {
  for (size_t index = 0; index < mail_.result_count; ++index) {
    RETURN_IF_ERROR(TakeResult(mail_.results[index]));
  }
  return absl::OkStatus();
}

absl::Status ControllerLoop::TakeResult(const StepResult& result) {
  if (plans_in_flight_ == 0) {
    return Bug(
        absl::StrFormat("a result of step %d came while no plan was in flight", result.step));
  }
  PlanInFlight& plan = Oldest();
  if (!result.status.ok()) {
    return WithDefaultReason(result.status);
  }
  RETURN_IF_ERROR(CheckResult(result, plan));
  oldest_plan_ = (oldest_plan_ + 1) % plans_.size();
  --plans_in_flight_;
  ++steps_finished_;
  board_->StepFinished(now_ - plan.sent_time, now_ - std::max(plan.sent_time, progress_time_),
                       plan.batch.prefill_tokens);
  progress_time_ = now_;
  size_t sample_index = 0;
  const float* logits = result.logits.data();
  auto fault = result.faults.begin();
  for (size_t index = 0; index < plan.batch.entries.size(); ++index) {
    const BatchEntry& entry = plan.batch.entries[index];
    scheduler_.Complete(entry);
    LiveRequest* live = LiveOf(entry.sequence);
    if (fault != result.faults.end() && static_cast<size_t>(fault->sequence) == index) {
      EndFaulty(live, fault->place);  // what it drew is not looked at
      ++fault;
    }
    if (entry.draws) {
      TakeToken(live, result.token_ids[sample_index], result.logprobs[sample_index]);
      ++sample_index;
    } else if (live->purpose() == SequencePurpose::kScore) {
      TakeLogits(live, entry, logits);
    }
    logits += static_cast<size_t>(plan.want_logits ? entry.logit_rows * options_.vocabulary : 0);
  }
  return absl::OkStatus();
}

void ControllerLoop::EndFaulty(LiveRequest* live, int32_t place) {
  if (live->phase() == SequencePhase::kEnded) {
    return;
  }
  scheduler_.Remove(live);
  EndWithError(live,
               AsDamagedModel(Bug(absl::StrFormat(
                   "the values of the model are no finite numbers from %s on, at position %d or "
                   "before: its weights are damaged (the load warns of them, trireme inspect "
                   "--verify compares the file with its SHA256SUMS) or the hardware is",
                   PlaceName(place), live->token_count()))));
}

void ControllerLoop::TakeToken(LiveRequest* live, int32_t token_id, float logprob) {
  if (live->phase() == SequencePhase::kEnded) {
    return;
  }
  if (live->TakeToken(token_id, logprob, now_)) {
    End(live);
  } else {
    scheduler_.Append(live, token_id);
  }
}

void ControllerLoop::TakeLogits(LiveRequest* live, const BatchEntry& entry, const float* logits) {
  if (live->phase() == SequencePhase::kEnded || entry.logit_rows == 0) {
    return;
  }
  const int64_t first_row = int64_t{entry.first_position} + entry.rows - entry.logit_rows;
  const auto values = static_cast<size_t>(entry.logit_rows * options_.vocabulary);
  if (live->TakeLogits(first_row, absl::MakeConstSpan(logits, values), options_.vocabulary)) {
    End(live);
  }
}

absl::Status ControllerLoop::CheckResult(const StepResult& result, const PlanInFlight& plan) const {
  if (result.step != plan.batch.step) {
    return Bug(absl::StrFormat("a result of step %d came, of step %d was wanted", result.step,
                               plan.batch.step));
  }
  const auto draws =
      static_cast<size_t>(std::count_if(plan.batch.entries.begin(), plan.batch.entries.end(),
                                        [](const BatchEntry& entry) { return entry.draws; }));
  if (result.token_ids.size() != draws || result.logprobs.size() != draws) {
    return Bug(absl::StrFormat("step %d drew %d tokens with %d log-probabilities; wanted %d",
                               result.step, result.token_ids.size(), result.logprobs.size(),
                               draws));
  }
  const int64_t logits = plan.want_logits ? plan.batch.logit_rows * options_.vocabulary : 0;
  if (static_cast<int64_t>(result.logits.size()) != logits) {
    return Bug(absl::StrFormat("step %d gave %d logits; wanted %d", result.step,
                               result.logits.size(), logits));
  }
  return CheckTokensAndFaults(result, plan.batch);
}

// A sequence that drew no token is among the faults.
absl::Status ControllerLoop::CheckTokensAndFaults(const StepResult& result,
                                                  const schedule::Batch& batch) const {
  auto fault = result.faults.begin();
  auto token_id = result.token_ids.begin();
  for (size_t index = 0; index < batch.entries.size(); ++index) {
    const bool is_faulty =
        fault != result.faults.end() && static_cast<size_t>(fault->sequence) == index;
    fault += is_faulty ? 1 : 0;
    if (!batch.entries[index].draws) {
      continue;
    }
    if (*token_id >= options_.vocabulary || *token_id < (is_faulty ? kNoToken : 0)) {
      return Bug(absl::StrFormat("step %d drew token %d, outside the vocabulary, 0 to %d",
                                 result.step, *token_id, options_.vocabulary - 1));
    }
    ++token_id;
  }
  if (fault != result.faults.end()) {
    return Bug(absl::StrFormat("step %d has a fault of sequence %d; wanted rising ones below %d",
                               result.step, fault->sequence, batch.entries.size()));
  }
  return absl::OkStatus();
}

absl::Status ControllerLoop::CheckStall() const {
  if (plans_in_flight_ == 0 || now_ - progress_time_ < options_.stall_timeout) {
    return absl::OkStatus();
  }
  return WithReason(
      absl::UnavailableError(absl::StrFormat(
          "stalled: step %d has not finished within %s; %d plans are in flight",
          steps_finished_ + 1, absl::FormatDuration(options_.stall_timeout), plans_in_flight_)),
      kReasonRankLost);
}

absl::Status ControllerLoop::SendPlans() {
  while (plans_in_flight_ < plans_.size()) {
    PlanInFlight& plan = plans_[(oldest_plan_ + plans_in_flight_) % plans_.size()];
    if (!scheduler_.Next(steps_sent_ + 1, &plan.batch)) {
      break;
    }
    BuildPlan(plan.batch, &plan_);
    plan.want_logits = plan_.want_logits;
    plan.sent_time = now_;
    if (plans_in_flight_ == 0) {
      progress_time_ = now_;
    }
    ++plans_in_flight_;
    ++steps_sent_;
    for (const BatchEntry& entry : plan.batch.entries) {
      if (!LiveOf(entry.sequence)->accepted()) {
        LiveOf(entry.sequence)->Accept(now_);
        mailbox_->LeaveQueue();
      }
    }
    const absl::Status status = pipeline_->SendPlan(plan_);
    if (!status.ok()) {
      return WithDefaultReason(status);
    }
  }
  if (plans_in_flight_ == 0 && !(scheduler_.waiting().empty() && scheduler_.running().empty())) {
    return Bug(absl::StrFormat("no plan can be made of %d running and %d waiting sequences",
                               scheduler_.running().size(), scheduler_.waiting().size()));
  }
  return absl::OkStatus();
}

void ControllerLoop::TakeRequests() {
  for (std::unique_ptr<LiveRequest>& request : mail_.requests) {
    LiveRequest* live = request.get();
    if (live->ended_on_arrival()) {
      // Not for the scheduler: it has one token more than is ever computed.
      live->FinishOnArrival(now_);
      mailbox_->LeaveQueue();
      mailbox_->Forget(*live);
      continue;
    }
    live_.push_back(std::move(request));
    scheduler_.Add(live);
  }
  mail_.requests.clear();
}

void ControllerLoop::RemoveCancelled() {
  for (const std::unique_ptr<LiveRequest>& live : live_) {
    if (live->phase() != SequencePhase::kEnded && live->cancelled()) {
      scheduler_.Remove(live.get());
      EndWithError(live.get(),
                   WithReason(absl::CancelledError("the request was cancelled"), kReasonByClient));
    }
  }
}

void ControllerLoop::RemoveExpired() {
  expired_.clear();
  scheduler_.RemoveExpired(now_, &expired_);
  for (Sequence* sequence : expired_) {
    LiveRequest* live = LiveOf(sequence);
    const bool ran = live->accepted();
    EndWithError(live, WithReason(absl::DeadlineExceededError(absl::StrFormat(
                                      "the deadline passed %s; %d tokens were generated",
                                      ran ? "while the request ran" : "in the queue",
                                      live->generated_tokens())),
                                  ran ? kReasonRunning : kReasonInQueue));
  }
}

// As its last token or row decided.
void ControllerLoop::End(LiveRequest* live) {
  scheduler_.Remove(live);
  if (live->purpose() == SequencePurpose::kScore) {
    mailbox_->Forget(*live);
    live->FinishScore();
    return;
  }
  mailbox_->Forget(*live);
  live->Finish(now_);
}

// The scheduler has let go of it.
void ControllerLoop::EndWithError(LiveRequest* live, const absl::Status& status) {
  if (!live->accepted()) {
    mailbox_->LeaveQueue();
  }
  mailbox_->Forget(*live);
  live->FinishWithError(status, now_);
}

void ControllerLoop::DestroyEnded() {
  const auto gone = [](const std::unique_ptr<LiveRequest>& live) {
    return live->phase() == SequencePhase::kEnded && live->plans_in_flight() == 0;
  };
  live_.erase(std::remove_if(live_.begin(), live_.end(), gone), live_.end());
}

void ControllerLoop::Publish() {
  Load load;
  load.running_sequences = static_cast<int64_t>(scheduler_.running().size());
  load.queued_tokens = scheduler_.queued_tokens();
  load.running_tokens = scheduler_.running_tokens();
  load.blocks_total = scheduler_.pool().blocks_total();
  load.blocks_free = scheduler_.pool().blocks_free();
  load.step = steps_finished_;
  load.preemptions = scheduler_.preemptions();
  board_->Publish(load);
}

void ControllerLoop::CallIdleCallbacks() {
  for (const std::function<void()>& on_idle : mailbox_->TakeIdleCallbacks()) {
    on_idle();
  }
}

void ControllerLoop::Finish(const absl::Status& reason) {
  Log(LogLevel::kInfo, absl::StrFormat("controller stops step=%d live=%d reason=\"%s\"",
                                       steps_finished_, live_.size(), reason.ToString()));
  // Nothing comes in from here on; what came in since the last look ends too.
  mailbox_->Stop(reason);
  mailbox_->Wait(absl::ZeroDuration(), &mail_);
  TakeRequests();
  for (const std::unique_ptr<LiveRequest>& live : live_) {
    if (live->phase() != SequencePhase::kEnded) {
      scheduler_.Remove(live.get());
      EndWithError(live.get(), reason);
    }
  }
  Publish();
  CallIdleCallbacks();
  plan_.Clear();
  plan_.kind = PlanKind::kShutdown;
  plan_.step = steps_sent_ + 1;
  const absl::Status status = pipeline_->SendPlan(plan_);
  if (!status.ok()) {
    Log(LogLevel::kWarning,
        absl::StrFormat("the shutdown did not reach the ranks: %s", status.ToString()));
  }
}

absl::Duration ControllerLoop::TimeToNextEvent() const {
  absl::Time next = scheduler_.NextDeadline();
  if (plans_in_flight_ > 0) {
    next = std::min(next, progress_time_ + options_.stall_timeout);
  }
  return next - now_;
}

}  // namespace trireme::engine

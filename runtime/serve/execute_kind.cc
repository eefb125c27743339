#include "runtime/serve/execute_kind.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/status_macros.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/validate_request.h"
#include "runtime/serve/wire_values.h"

namespace trireme::serve {
namespace {

// '@' is in no request id, so Generate's streams never clash with these.
std::string AttemptId(const std::string& request_id, uint32_t attempt) {
  return absl::StrCat(request_id, "@", attempt);
}

class ExecuteKind final : public StreamKind {
 public:
  ExecuteKind(Door* door, AttemptFence* fence) : door_(door), fence_(fence) {}

  bool IsQuick(absl::string_view request_bytes) const override {
    return request_bytes.size() <= kQuickBytesMax;
  }

  absl::StatusOr<PreparedStream> Prepare(absl::string_view request_bytes,
                                         const ReplicaFacade& replica) override {
    v1::ExecuteRequest message;
    RETURN_IF_ERROR(ParseMessage(request_bytes, door_->options().request_bytes_max, &message));
    if (message.epoch() != 0 && message.epoch() != replica.epoch) {
      return WithReason(
          absl::FailedPreconditionError(absl::StrCat("the request is for epoch ", message.epoch(),
                                                     " and this replica's is ", replica.epoch)),
          kReasonResumeMismatch);
    }
    ASSIGN_OR_RETURN(ValidatedExecute validated, ValidateExecute(message, replica.model));
    ASSIGN_OR_RETURN(const uint32_t replaced,
                     fence_->Admit(message.request_id(), message.attempt()));
    if (replaced != 0) {
      door_->live_calls().EndOne(
          AttemptId(message.request_id(), replaced),
          WithReason(absl::CancelledError(
                         absl::StrCat("attempt ", message.attempt(), " replaced this one")),
                     kReasonByClient));
    }
    replica_ = &replica;
    prompt_tokens_ = message.token_ids_size();
    PreparedStream prepared;
    prepared.live_id = AttemptId(message.request_id(), message.attempt());
    prepared.lease = message.lease();
    if (message.has_budget_left()) {
      prepared.budget = DurationOf(message.budget_left());
    }
    for (ValidatedChoice& choice : validated.choices) {
      schedule::Request request = validated.request;
      request.id = absl::StrCat(prepared.live_id, "#", choice.choice);
      request.choice = choice.choice;
      request.emitted = std::move(choice.emitted);
      prepared.requests.push_back(std::move(request));
    }
    return prepared;
  }

  std::string QueuedEvent(uint64_t seq, int64_t position) override {
    v1::ExecuteEvent event;
    event.set_seq(seq);
    event.mutable_queued()->set_position(position);
    return event.SerializeAsString();
  }

  std::string AcceptedEvent(uint64_t seq, absl::string_view /*fingerprint*/) override {
    v1::ExecuteEvent event;
    event.set_seq(seq);
    event.mutable_accepted()->set_fingerprint(replica_->model.fingerprint);
    event.mutable_accepted()->set_prompt_tokens(prompt_tokens_);
    return event.SerializeAsString();
  }

  std::string TokensEvent(uint64_t seq, const schedule::Request& request,
                          const engine::Delta& delta) override {
    v1::ExecuteEvent event;
    event.set_seq(seq);
    v1::ExecuteTokens* tokens = event.mutable_tokens();
    tokens->set_choice(request.choice);
    tokens->set_first_position(delta.first_position);
    tokens->mutable_token_ids()->Add(delta.token_ids.begin(), delta.token_ids.end());
    tokens->mutable_logprobs()->Add(delta.logprobs.begin(), delta.logprobs.end());
    tokens->set_text(delta.text);
    return event.SerializeAsString();
  }

  bool EndsWithTextTail() const override { return true; }

  std::string ChoiceFinishedEvent(uint64_t seq, const schedule::Request& request,
                                  const engine::Ending& ending,
                                  absl::string_view text_tail) override {
    v1::ExecuteEvent event;
    event.set_seq(seq);
    SetChoiceFinished(request, ending, event.mutable_choice_finished());
    event.mutable_choice_finished()->set_text_tail(std::string(text_tail));
    return event.SerializeAsString();
  }

  std::string FinishedEvent(uint64_t seq, absl::Span<const engine::Ending> endings) override {
    v1::ExecuteEvent event;
    event.set_seq(seq);
    SetUsage(endings, event.mutable_finished()->mutable_usage());
    SetTimings(endings, event.mutable_finished()->mutable_timings());
    return event.SerializeAsString();
  }

 private:
  Door* const door_;
  AttemptFence* const fence_;
  const ReplicaFacade* replica_ = nullptr;
  int64_t prompt_tokens_ = 0;
};

}  // namespace

std::unique_ptr<StreamKind> MakeExecuteKind(Door* door, AttemptFence* fence) {
  return std::make_unique<ExecuteKind>(door, fence);
}

}  // namespace trireme::serve

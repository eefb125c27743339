#include "runtime/balance/attempt_tap.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine.pb.h"
#include "runtime/balance/execute_messages.h"
#include "runtime/base/error_reason.h"

namespace trireme::balance {
namespace {

absl::Status BadAnswer(absl::string_view what) {
  return WithReason(
      absl::InternalError(absl::StrCat("the replica's answer is out of order: ", what)),
      kReasonBug);
}

class AttemptTap final : public AttemptListener {
 public:
  AttemptTap(AttemptObserver* observer, RequestKey request, uint32_t attempt, uint32_t choice)
      : observer_(*observer), request_(request), attempt_(attempt), choice_(choice) {}

  void OnEvent(v1::ExecuteEvent& event) override;
  void OnEnd(const AttemptEnd& end) override;

 private:
  void Apply(v1::ExecuteEvent& event);

  AttemptObserver& observer_;
  const RequestKey request_;
  const uint32_t attempt_;
  const uint32_t choice_;
  // One event at a time.
  uint64_t last_seq_ = 0;
  bool over_ = false;  // what follows is not looked at
  std::optional<engine::Ending> ending_;
  std::string text_tail_;
};

void AttemptTap::OnEvent(v1::ExecuteEvent& event) {
  if (over_) {
    return;
  }
  if (event.seq() != last_seq_ + 1) {
    over_ = true;
    observer_.OnFailed(request_, attempt_,
                       BadAnswer(absl::StrCat("event ", event.seq(), " follows event ", last_seq_)),
                       absl::ZeroDuration());
    return;
  }
  last_seq_ = event.seq();
  Apply(event);
}

void AttemptTap::Apply(v1::ExecuteEvent& event) {
  absl::Status fault;
  if (event.has_accepted()) {
    observer_.OnAccepted(request_, attempt_, event.accepted());
  } else if (event.has_tokens()) {
    const v1::ExecuteTokens& tokens = event.tokens();
    if (ending_.has_value()) {
      fault = BadAnswer("tokens after the choice's end");
    } else if (tokens.choice() != choice_) {
      fault = BadAnswer(absl::StrCat("tokens of choice ", tokens.choice(), ", wanted ", choice_));
    } else if (tokens.token_ids().empty()) {
      fault = BadAnswer("text without tokens");
    } else if (!tokens.logprobs().empty() && tokens.logprobs_size() != tokens.token_ids_size()) {
      fault = BadAnswer(absl::StrCat(tokens.logprobs_size(), " logprobs of ",
                                     tokens.token_ids_size(), " tokens"));
    } else {
      observer_.OnTokens(request_, attempt_, *event.mutable_tokens());
    }
  } else if (event.has_choice_finished()) {
    absl::StatusOr<engine::Ending> ending = EndingOf(event.choice_finished());
    if (ending_.has_value()) {
      fault = BadAnswer("the choice ends twice");
    } else if (!ending.ok()) {
      fault = ending.status();
    } else {
      ending_ = *std::move(ending);
      text_tail_ = event.choice_finished().text_tail();
    }
  } else if (event.has_finished()) {
    if (ending_.has_value()) {
      over_ = true;
      observer_.OnFinished(request_, attempt_, event.finished().usage().generated_tokens(),
                           *ending_, text_tail_);
    } else {
      fault = BadAnswer("finished without an end of the choice");
    }
  }
  if (!fault.ok()) {
    over_ = true;
    observer_.OnFailed(request_, attempt_, fault, absl::ZeroDuration());
  }
}

void AttemptTap::OnEnd(const AttemptEnd& end) {
  if (!over_) {
    if (ending_.has_value()) {
      // Lost between its last two words: nothing is missing.
      observer_.OnFinished(request_, attempt_, -1, *ending_, text_tail_);
    } else {
      observer_.OnFailed(request_, attempt_,
                         end.status.ok() ? BadAnswer("it stops without an end") : end.status,
                         end.retry_delay);
    }
  }
  observer_.OnOver(request_, attempt_);
}

}  // namespace

std::shared_ptr<AttemptListener> MakeAttemptTap(AttemptObserver* observer, RequestKey request,
                                                uint32_t attempt, uint32_t choice) {
  return std::make_shared<AttemptTap>(observer, request, attempt, choice);
}

}  // namespace trireme::balance

// The part of StreamSession that makes and keeps events.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/serve/stream_session.h"

namespace trireme::serve {
namespace {

// What a resumable stream keeps of its past: far more than sockets between a reading client and the
// server hold, which is what a client can have lost.
constexpr size_t kKeptBytesMax = size_t{512} << 10;

}  // namespace

void StreamSession::NoteWaiting(absl::Time now) {
  if (accepted_ || writing_ || choices_.empty() ||
      now - queued_noted_ < door_->options().queued_after) {
    return;
  }
  CollectEvents();
  if (!HasUnwritten()) {
    queued_noted_ = now;
    const int64_t waiting = door_->replica()->controller->load().waiting_requests;
    AddEvent(kind_->QueuedEvent(last_seq_ + 1, waiting));
  }
}

void StreamSession::AddEvent(std::string event) {
  ++last_seq_;
  events_bytes_ += event.size();
  events_.push_back(std::move(event));
}

// Forgets what was written, as far as it is not kept for a Resume.
void StreamSession::DropEvents() {
  while (first_seq_ <= written_seq_ && (!resumable_ || events_bytes_ > kKeptBytesMax)) {
    events_bytes_ -= events_.front().size();
    events_.pop_front();
    ++first_seq_;
  }
}

void StreamSession::CollectChoice(Choice& choice) {
  engine::Delta& delta = choice.delta;
  if (choice.ending.has_value() || error_.has_value() || !choice.stream->Take(&delta)) {
    return;
  }
  if (!accepted_ && (delta.accepted || !delta.token_ids.empty())) {
    accepted_ = true;
    accepted_at_ = door_->clock().Now();
    AddEvent(kind_->AcceptedEvent(last_seq_ + 1, delta.fingerprint));
  }
  choice.tokens += static_cast<int64_t>(delta.token_ids.size());
  if (!delta.token_ids.empty() && !first_token_at_.has_value()) {
    first_token_at_ = door_->clock().Now();
  }
  std::string tail;
  if (kind_->EndsWithTextTail() && delta.text_tail_bytes > 0) {
    const size_t head = delta.text.size() - delta.text_tail_bytes;
    tail = delta.text.substr(head);
    delta.text.resize(head);
  }
  if (!delta.token_ids.empty() || !delta.text.empty()) {
    AddEvent(kind_->TokensEvent(last_seq_ + 1, choice.request, delta));
  }
  choice.ending = std::move(delta.ending);
  if (choice.ending.has_value() && !choice.ending->status.ok()) {
    error_ = choice.ending->status;
  } else if (choice.ending.has_value()) {
    AddEvent(kind_->ChoiceFinishedEvent(last_seq_ + 1, choice.request, *choice.ending, tail));
  }
}

void StreamSession::CollectEvents() {
  for (Choice& choice : choices_) {
    CollectChoice(choice);
  }
  if (!error_.has_value() && AllChoicesFinished() && !finished_event_made_) {
    finished_event_made_ = true;
    std::vector<engine::Ending> endings;
    for (const Choice& choice : choices_) {
      endings.push_back(*choice.ending);
    }
    AddEvent(kind_->FinishedEvent(last_seq_ + 1, endings));
  }
}

bool StreamSession::AllChoicesFinished() const {
  for (const Choice& choice : choices_) {
    if (!choice.ending.has_value()) {
      return false;
    }
  }
  return !choices_.empty();
}

StreamTrailers StreamSession::Trailers() const {
  StreamTrailers trailers;
  if (!end_->ok()) {
    trailers.emplace_back("trireme-last-seq", absl::StrCat(written_seq_));
    if (!incident_.empty()) {
      trailers.emplace_back("trireme-incident", incident_);
    }
  }
  int32_t attempts = 0;
  std::set<std::string> replicas;
  engine::Timings longest;
  for (const Choice& choice : choices_) {
    if (choice.ending.has_value()) {
      const engine::Ending& ending = *choice.ending;
      attempts = std::max(attempts, ending.route.attempts);
      longest.queue = std::max(longest.queue, ending.timings.queue);
      longest.first_token = std::max(longest.first_token, ending.timings.first_token);
      longest.total = std::max(longest.total, ending.timings.total);
      if (!ending.route.replica.empty()) {
        replicas.insert(ending.route.replica);
      }
      if (!ending.route.explanation.empty()) {
        trailers.emplace_back("trireme-route", ending.route.explanation);
      }
    }
  }
  if (attempts > 0) {
    trailers.emplace_back("trireme-attempts", absl::StrCat(attempts));
    trailers.emplace_back("trireme-replica", absl::StrJoin(replicas, ","));
  }
  if (longest.total > absl::ZeroDuration()) {
    trailers.emplace_back("trireme-timing",
                          absl::StrFormat("queue_ms=%.3f first_token_ms=%.3f total_ms=%.3f",
                                          absl::ToDoubleMilliseconds(longest.queue),
                                          absl::ToDoubleMilliseconds(longest.first_token),
                                          absl::ToDoubleMilliseconds(longest.total)));
  }
  return trailers;
}

RequestRecord StreamSession::Record() const {
  RequestRecord record;
  record.id = live_id_;
  record.status = *end_;
  record.ended = absl::Now();
  record.total = ended_at_ - arrival_;
  record.queue = (accepted_ ? accepted_at_ : ended_at_) - arrival_;
  if (first_token_at_.has_value()) {
    record.first_token = *first_token_at_ - arrival_;
  }
  record.choices = std::max<int64_t>(1, static_cast<int64_t>(choices_.size()));
  for (const Choice& choice : choices_) {
    record.usage.prompt_tokens = static_cast<int64_t>(choice.request.prompt.size());
    record.usage.generated_tokens += choice.tokens;
    if (choice.ending.has_value()) {
      record.usage.cached_tokens += choice.ending->usage.cached_tokens;
      record.usage.recomputed_tokens += choice.ending->usage.recomputed_tokens;
      record.routes.push_back(choice.ending->route);
    }
  }
  if (end_->ok() && !choices_.empty() && choices_.front().ending.has_value()) {
    record.finish = std::string(sample::FinishReasonName(choices_.front().ending->reason));
  }
  return record;
}

}  // namespace trireme::serve

// What the core wants done, and the doing of it.
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine.pb.h"
#include "runtime/balance/execute_messages.h"
#include "runtime/balance/forwarder.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"

namespace trireme::balance {

void Forwarder::Translate(Actions& actions, const Event& event) {
  for (Action& action : actions) {
    if (auto* start = std::get_if<StartAttempt>(&action)) {
      TranslateStart(*start);
    } else if (auto* cancel = std::get_if<CancelAttempt>(&action)) {
      chores_.emplace_back(*cancel);
    } else if (auto* accept = std::get_if<AcceptRequest>(&action)) {
      if (const ForwardedStream* const live = Find(accept->request); live != nullptr) {
        chores_.emplace_back(
            AcceptStream{.stream = live->stream,
                         .first_position = static_cast<int64_t>(live->request.emitted.size()),
                         .fingerprint = std::string(event.fingerprint)});
      }
    } else if (auto* deliver = std::get_if<DeliverTokens>(&action)) {
      CHECK(event.tokens != nullptr);
      TranslateTokens(deliver->request, *event.tokens);
    } else if (auto* finish = std::get_if<FinishRequest>(&action)) {
      TranslateEnd(finish->request, absl::OkStatus(), finish->story);
    } else if (auto* fail = std::get_if<FailRequest>(&action)) {
      TranslateEnd(fail->request, stopped_.ok() ? fail->status : stopped_, fail->story);
    }
  }
  if (core_.NextTick() < wake_at_) {
    sooner_.SignalAll();
  }
}

void Forwarder::TranslateStart(StartAttempt& start) {
  const auto found = live_.find(start.request);
  CHECK(found != live_.end());
  ForwardedStream& live = *found->second;
  live.replica = replicas_.at(start.replica)->name();
  if (!start.explanation.empty()) {
    live.explanation = start.explanation;
  }
  if (start.attempt > 1) {
    Log(LogLevel::kInfo,
        absl::StrCat("request moves request=", live.request.id, " attempt=", start.attempt,
                     " replica=", live.replica, " emitted=", start.emitted.size()));
  }
  chores_.emplace_back(SendAttempt{.live = found->second, .start = std::move(start)});
}

void Forwarder::TranslateTokens(RequestKey request, v1::ExecuteTokens& tokens) {
  ForwardedStream* const live = Find(request);
  CHECK(live != nullptr);
  if (!live->first_token.has_value()) {
    live->first_token = clock_.Now();
  }
  live->tokens += tokens.token_ids_size();
  chores_.emplace_back(
      PushTokens{.stream = live->stream,
                 .token_ids = {tokens.token_ids().begin(), tokens.token_ids().end()},
                 .logprobs = {tokens.logprobs().begin(), tokens.logprobs().end()},
                 .text = std::move(*tokens.mutable_text())});
}

void Forwarder::TranslateEnd(RequestKey request, const absl::Status& status,
                             const RequestStory& story) {
  const auto found = live_.find(request);
  CHECK(found != live_.end());
  ForwardedStream& live = *found->second;
  const absl::Time now = clock_.Now();
  engine::Ending ending;
  if (status.ok()) {
    ending = std::move(live.ending);
  }
  ending.status = status;
  ending.usage = {.prompt_tokens = static_cast<int64_t>(live.request.prompt.size()),
                  .cached_tokens = live.cached_tokens,
                  .generated_tokens = live.tokens,
                  .recomputed_tokens = story.recomputed_tokens};
  ending.timings = {.queue = story.queued,
                    .first_token = live.first_token.value_or(now) - live.arrival,
                    .total = now - live.arrival};
  ending.route = RouteOf(live, story);
  chores_.emplace_back(EndStream{.stream = live.stream,
                                 .ending = std::move(ending),
                                 .text_tail = status.ok() ? std::move(live.text_tail) : ""});
  keys_.erase(live.request.id);
  live_.erase(found);
  if (live_.empty() && on_idle_ != nullptr) {
    chores_.emplace_back(std::exchange(on_idle_, nullptr));
  }
}

engine::Route Forwarder::RouteOf(const ForwardedStream& live, const RequestStory& story) const {
  engine::Route route{.attempts = static_cast<int32_t>(story.attempts),
                      .replica = live.replica,
                      .explanation = live.explanation,
                      .disruptions = {}};
  const auto name_of = [this](ReplicaKey key) {
    const auto found = replicas_.find(key);
    return found == replicas_.end() ? std::string() : found->second->name();
  };
  for (const Disruption& disruption : story.disruptions) {
    route.disruptions.push_back({.reason = std::string(disruption.reason),
                                 .gap = disruption.gap,
                                 .from_replica = name_of(disruption.from),
                                 .to_replica = name_of(disruption.to)});
  }
  return route;
}

void Forwarder::RunChores() {
  std::deque<Chore> chores;
  MutexLock lock(&mutex_);
  if (doing_chores_) {
    return;
  }
  doing_chores_ = true;
  while (!chores_.empty()) {
    chores.swap(chores_);
    mutex_.Unlock();
    for (Chore& chore : chores) {
      std::visit([this](auto& content) { Do(content); }, chore);
    }
    chores.clear();
    mutex_.Lock();
  }
  doing_chores_ = false;
  chores_done_.SignalAll();
}

void Forwarder::Do(SendAttempt& send) {
  const StartAttempt& start = send.start;
  const schedule::Request& request = send.live->request;
  v1::ExecuteRequest message;
  AttemptFacts facts{.request_id = absl::StrCat(options_.lease, "/", start.request),
                     .attempt = start.attempt,
                     .epoch = start.epoch,
                     .emitted = std::move(send.start.emitted),
                     .budget_left = request.deadline - clock_.Now(),
                     .lease = options_.lease};
  SetExecuteRequest(request, facts, &message);
  auto tap = MakeAttemptTap(this, start.request, start.attempt, request.choice);
  attempts_[{start.request, start.attempt}] =
      replicas_.at(start.replica)->link().Execute(message, request.deadline, std::move(tap));
}

void Forwarder::Do(CancelAttempt& cancel) {
  const auto found = attempts_.find({cancel.request, cancel.attempt});
  if (found != attempts_.end()) {
    found->second->Cancel();
  }
}

void Forwarder::Do(AcceptStream& accept) {
  accept.stream->Accept(accept.first_position, accept.fingerprint);
}

void Forwarder::Do(PushTokens& push) {
  push.stream->PushAll(push.token_ids, push.logprobs, push.text);
}

void Forwarder::Do(EndStream& end) { end.stream->Finish(std::move(end.ending), end.text_tail); }

void Forwarder::Do(ForgetAttempt& forget) { attempts_.erase({forget.request, forget.attempt}); }

}  // namespace trireme::balance

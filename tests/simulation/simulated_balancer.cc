#include "tests/simulation/simulated_balancer.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_format.h"

namespace trireme::simulation {
namespace {

constexpr int kToReplica = 1;

}  // namespace

SimulatedBalancer::SimulatedBalancer(World* world, int index, const BalancerSettings& settings,
                                     Plant plant)
    : process(world), world_(world), index_(index), settings_(settings), plant_(plant) {}

void SimulatedBalancer::Start() {
  process.Start();
  balance::BalancerOptions options = settings_.options;
  options.random_seed = world_->random.Next();
  core_ = std::make_unique<balance::BalancerCore>(options);
  retries_seen_ = 0;
  request_times_.clear();
  retry_times_.clear();
  tick_ = absl::InfiniteFuture();
  keys_.clear();
  balance::Actions actions;
  for (size_t replica = 0; replica < replicas.size(); ++replica) {
    keys_.push_back(
        core_->OnReplicaAdded(replicas[replica]->settings.name, world_->now(), &actions));
    Reconnect(replica);
  }
  Lease();
}

void SimulatedBalancer::Kill(absl::Duration restart_after) {
  if (!process.alive()) {
    return;
  }
  process.Kill();
  std::vector<Submission*> broken = std::move(arriving_);
  arriving_.clear();
  for (const auto& [key, live] : live_) {
    broken.push_back(live.submission);
  }
  live_.clear();
  by_submission_.clear();
  tenants_.clear();
  core_.reset();
  for (Link* link : links) {
    link->Reset();
  }
  for (Submission* submission : broken) {
    world_->At(world_->now() + world_->RandomBetween(absl::Milliseconds(1), absl::Milliseconds(20)),
               [submission] { submission->OnBroken(); });
  }
  world_->At(world_->now() + restart_after, [this] { Start(); });
}

void SimulatedBalancer::Reconnect(size_t replica) {
  if (!links[replica]->connected()) {
    links[replica]->Connect();
    process.After(world_->RandomBetween(absl::Milliseconds(50), absl::Milliseconds(300)),
                  [this, replica] { Reconnect(replica); });
  }
}

void SimulatedBalancer::Lease() {
  for (size_t replica = 0; replica < replicas.size(); ++replica) {
    links[replica]->Send(kToReplica, [this, replica] { replicas[replica]->OnLease(index_); });
  }
  process.After(absl::Seconds(1), [this] { Lease(); });
}

void SimulatedBalancer::Submit(Submission* submission, const std::vector<int32_t>& emitted,
                               const std::string& fingerprint) {
  if (!process.alive()) {
    submission->OnBroken();
    return;
  }
  arriving_.push_back(submission);
  process.Do([this, submission, emitted, fingerprint] {
    arriving_.erase(std::find(arriving_.begin(), arriving_.end(), submission));
    SubmitNow(submission, emitted, fingerprint);
  });
}

void SimulatedBalancer::SubmitNow(Submission* submission, const std::vector<int32_t>& emitted,
                                  const std::string& fingerprint) {
  const SimulatedRequest& request = submission->request();
  balance::RequestFacts facts;
  facts.tenant = plant_ == Plant::kUnfairQueue ? absl::string_view() : request.tenant;
  facts.prompt = request.prompt;
  facts.emitted = emitted;
  facts.fingerprint = fingerprint;
  facts.max_tokens = request.max_tokens;
  facts.deadline = world_->now() + request.time_limit;
  facts.priority = request.priority;
  facts.disruption_policy = request.policy;
  balance::Actions actions;
  const absl::StatusOr<balance::RequestKey> key = core_->OnRequest(facts, world_->now(), &actions);
  if (key.ok()) {
    request_times_.push_back(world_->now());
    Live& live = live_[*key];
    live.submission = submission;
    live.emitted = emitted;
    by_submission_[submission] = *key;
    const bool starts = std::any_of(actions.begin(), actions.end(), [&](const auto& action) {
      const auto* start = std::get_if<balance::StartAttempt>(&action);
      return start != nullptr && start->request == *key;
    });
    if (!starts && emitted.empty()) {
      SetWaiting(live, true);
    }
  }
  Carry(&actions, nullptr);
  if (!key.ok()) {
    submission->OnFailed(key.status());
  }
}

void SimulatedBalancer::Cancel(Submission* submission) {
  process.Do([this, submission] {
    const auto found = by_submission_.find(submission);
    if (found != by_submission_.end()) {
      balance::Actions actions;
      core_->OnCancel(found->second, world_->now(), &actions);
      Carry(&actions, nullptr);
    }
  });
}

void SimulatedBalancer::OnAnswer(size_t, const Answer& answer_in) {
  Answer answer = answer_in;
  if (plant_ == Plant::kMissedFencing) {
    if (const auto view = core_->Find(answer.key); view.has_value()) {
      answer.attempt = view->attempt;
    }
  }
  const auto found = live_.find(answer_in.key);
  if (answer_in.kind == Answer::Kind::kFailed && found != live_.end() &&
      found->second.attempt == answer_in.attempt) {
    found->second.attempt = 0;
  }
  balance::Actions actions;
  const absl::Time now = world_->now();
  switch (answer.kind) {
    case Answer::Kind::kAccepted:
      core_->OnAccepted(answer.key, answer.attempt, answer.fingerprint, answer.cached_tokens, now,
                        &actions);
      break;
    case Answer::Kind::kTokens:
      core_->OnTokens(answer.key, answer.attempt, answer.first_position, answer.token_ids, now,
                      &actions);
      break;
    case Answer::Kind::kFinished:
      core_->OnFinished(answer.key, answer.attempt, answer.generated_tokens, now, &actions);
      break;
    case Answer::Kind::kFailed:
      core_->OnAttemptFailed(answer.key, answer.attempt, answer.status, absl::ZeroDuration(), now,
                             &actions);
      break;
  }
  Carry(&actions, &answer_in);
}

void SimulatedBalancer::OnReport(size_t replica, const balance::LoadReport& report) {
  balance::Actions actions;
  core_->OnLoadReport(keys_[replica], report, world_->now(), &actions).IgnoreError();
  Carry(&actions, nullptr);
}

void SimulatedBalancer::OnLinkReset(size_t replica) {
  balance::Actions actions;
  core_->OnWatchLost(keys_[replica], world_->now(), &actions);
  Carry(&actions, nullptr);
  std::vector<std::pair<balance::RequestKey, uint32_t>> calls;
  for (const auto& [key, live] : live_) {
    if (live.attempt != 0 && live.replica == replica) {
      calls.emplace_back(key, live.attempt);
    }
  }
  for (const auto& [key, attempt] : calls) {
    if (const auto found = live_.find(key);
        found == live_.end() || found->second.attempt != attempt) {
      continue;
    }
    live_.at(key).attempt = 0;
    core_->OnAttemptFailed(key, attempt, absl::UnavailableError("Socket closed"),
                           absl::ZeroDuration(), world_->now(), &actions);
    Carry(&actions, nullptr);
  }
  Reconnect(replica);
}

void SimulatedBalancer::Carry(balance::Actions* actions, const Answer* answer) {
  for (const balance::Action& action : *actions) {
    if (const auto* start = std::get_if<balance::StartAttempt>(&action)) {
      CarryOne(*start);
    } else if (const auto* cancel = std::get_if<balance::CancelAttempt>(&action)) {
      CarryOne(*cancel);
    } else if (const auto* deliver = std::get_if<balance::DeliverTokens>(&action)) {
      Deliver(*deliver, answer);
    } else if (const auto* finish = std::get_if<balance::FinishRequest>(&action)) {
      Live& live = live_.at(finish->request);
      if (answer == nullptr || answer->attempt != live.attempt) {
        world_->Violate(absl::StrFormat("request %d finished by an old attempt",
                                        live.submission->request().id));
      }
      Submission* submission = live.submission;
      live_.erase(finish->request);
      by_submission_.erase(submission);
      submission->OnFinished(finish->story);
    } else if (const auto* fail = std::get_if<balance::FailRequest>(&action)) {
      Live& live = live_.at(fail->request);
      SetWaiting(live, false);
      Submission* submission = live.submission;
      live_.erase(fail->request);
      by_submission_.erase(submission);
      submission->OnFailed(fail->status);
    }
  }
  actions->clear();
  CheckBudget();
  ScheduleTick();
}

void SimulatedBalancer::CarryOne(const balance::StartAttempt& start) {
  Live& live = live_.at(start.request);
  const SimulatedRequest& request = live.submission->request();
  if (live.attempt != 0) {
    world_->Violate(absl::StrFormat("request %d has two attempts at once", request.id));
  }
  SetWaiting(live, false);
  if (start.attempt == 1) {
    Serve(request.tenant, static_cast<double>(request.prompt.size()));
  }
  live.attempt = start.attempt;
  live.replica =
      static_cast<size_t>(std::find(keys_.begin(), keys_.end(), start.replica) - keys_.begin());
  live.submission->OnStarted(live.replica);
  ExecuteCall call;
  call.request = &request;
  call.balancer = index_;
  call.balancer_incarnation = process.incarnation();
  call.key = start.request;
  call.attempt = start.attempt;
  call.epoch = start.epoch;
  call.emitted = start.emitted;
  SimulatedReplica* replica = replicas[live.replica];
  if (links[live.replica]->connected()) {
    links[live.replica]->Send(kToReplica, [replica, call] { replica->OnExecute(call); });
    return;
  }
  process.After(absl::Milliseconds(1), [this, index = live.replica, call] {
    Answer answer;
    answer.kind = Answer::Kind::kFailed;
    answer.key = call.key;
    answer.attempt = call.attempt;
    answer.status = absl::UnavailableError("connection refused");
    OnAnswer(index, answer);
  });
}

void SimulatedBalancer::CarryOne(const balance::CancelAttempt& cancel) {
  Live& live = live_.at(cancel.request);
  if (live.attempt != cancel.attempt) {
    world_->Violate(absl::StrFormat("request %d: attempt %d cancelled while %d is current",
                                    live.submission->request().id, cancel.attempt, live.attempt));
  }
  live.attempt = 0;
  SimulatedReplica* replica = replicas[live.replica];
  links[live.replica]->Send(
      kToReplica, [this, replica, cancel, incarnation = process.incarnation()] {
        replica->OnCancel(index_, incarnation, cancel.request, cancel.attempt);
      });
}

void SimulatedBalancer::Deliver(const balance::DeliverTokens& deliver, const Answer* answer) {
  Live& live = live_.at(deliver.request);
  const SimulatedRequest& request = live.submission->request();
  if (answer == nullptr || answer->key != deliver.request || answer->attempt != live.attempt) {
    world_->Violate(absl::StrFormat(
        "request %d: tokens of attempt %d reached the client while attempt %d is current",
        request.id, answer == nullptr ? 0 : answer->attempt, live.attempt));
    return;
  }
  Serve(request.tenant, 2.0 * static_cast<double>(deliver.tokens));
  if (plant_ == Plant::kLostToken && world_->random.Chance(0.001)) {
    return;
  }
  live.submission->OnTokens(deliver.first_position, answer->token_ids);
  if (plant_ == Plant::kDoubleSend && world_->random.Chance(0.001)) {
    live.submission->OnTokens(deliver.first_position, answer->token_ids);
  }
}

void SimulatedBalancer::SetWaiting(Live& live, bool waiting) {
  if (live.queued == waiting) {
    return;
  }
  live.queued = waiting;
  const std::string& name = live.submission->request().tenant;
  TenantService& tenant = tenants_[name];
  tenant.waiting += waiting ? 1 : -1;
  if (waiting && tenant.waiting == 1) {
    for (auto& [other_name, other] : tenants_) {
      tenant.ahead_since[other_name] = tenant.served - other.served;
      other.ahead_since[name] = other.served - tenant.served;
    }
  }
}

void SimulatedBalancer::Serve(const std::string& name, double tokens) {
  TenantService& tenant = tenants_[name];
  tenant.served += tokens;
  if (settings_.fairness_bound <= 0 || tenant.waiting == 0) {
    return;
  }
  for (const auto& [other_name, other] : tenants_) {
    if (other_name == name || other.waiting == 0) {
      continue;
    }
    const double ahead = tenant.served - other.served - tenant.ahead_since[other_name];
    if (ahead > settings_.fairness_bound) {
      world_->Violate(absl::StrFormat(
          "tenant %s was served %.0f tokens more than %s while both waited, allowed are %.0f", name,
          ahead, other_name, settings_.fairness_bound));
    }
  }
}

// B-7, counted by plain lists.
void SimulatedBalancer::CheckBudget() {
  const absl::Time now = world_->now();
  const balance::RetryOptions& retry = settings_.options.retry;
  const int64_t retries = core_->counts().retries_charged;
  if (retries == retries_seen_) {
    return;
  }
  for (; retries_seen_ < retries; ++retries_seen_) {
    retry_times_.push_back(now);
  }
  while (!request_times_.empty() && request_times_.front() < now - retry.window) {
    request_times_.pop_front();
  }
  while (retry_times_.front() <= now - retry.window) {
    retry_times_.pop_front();
  }
  const double allowed = std::max(static_cast<double>(retry.retries_min),
                                  retry.share * static_cast<double>(request_times_.size()));
  if (static_cast<double>(retry_times_.size()) > allowed) {
    world_->Violate(absl::StrFormat("%d retries in a window of %d requests", retry_times_.size(),
                                    request_times_.size()));
  }
}

void SimulatedBalancer::ScheduleTick() {
  const absl::Time next = core_->NextTick();
  if (next >= tick_ || next == absl::InfiniteFuture()) {
    return;
  }
  tick_ = next;
  const uint64_t number = ++tick_number_;
  process.After(std::max(next - world_->now(), absl::ZeroDuration()), [this, number] {
    if (number != tick_number_) {
      return;
    }
    tick_ = absl::InfiniteFuture();
    balance::Actions actions;
    core_->OnTick(world_->now(), &actions);
    Carry(&actions, nullptr);
  });
}

std::string SimulatedBalancer::CheckBooks() {
  if (!process.alive()) {
    return "";
  }
  if (core_->live_requests() != static_cast<int64_t>(live_.size())) {
    return absl::StrFormat("balancer %d holds %d requests, but %d have no end", index_,
                           core_->live_requests(), live_.size());
  }
  std::vector<int64_t> attempts(keys_.size());
  for (const auto& [key, live] : live_) {
    const auto view = core_->Find(key);
    const bool running = view.has_value() && !view->queued;
    if (running) {
      ++attempts[live.replica];
    }
  }
  const std::vector<balance::ReplicaView> views = core_->Replicas(world_->now());
  for (size_t index = 0; index < views.size(); ++index) {
    const balance::ReplicaView& view = views[index];
    if (view.attempts != attempts[index] || view.attempts_waiting < 0 ||
        view.attempts_waiting > view.attempts || view.tokens_in_flight < 0 ||
        (view.attempts == 0) != (view.tokens_in_flight == 0)) {
      return absl::StrFormat(
          "balancer %d books %d attempts, %d waiting and %d tokens at %s, where %d run", index_,
          view.attempts, view.attempts_waiting, view.tokens_in_flight, view.name, attempts[index]);
    }
  }
  return "";
}

}  // namespace trireme::simulation

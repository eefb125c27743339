#include "tests/simulation/simulated_replica.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/error_reason.h"

namespace trireme::simulation {
namespace {

constexpr absl::Duration kReportPeriod = absl::Milliseconds(200);
constexpr absl::Duration kLeaseTime = absl::Seconds(5);

absl::Status Unavailable(absl::string_view reason, absl::string_view text) {
  return WithReason(absl::UnavailableError(text), reason);
}

}  // namespace

SimulatedReplica::SimulatedReplica(World* world, const ReplicaSettings& settings_in, int balancers,
                                   Plant plant)
    : process(world),
      settings(settings_in),
      world_(world),
      plant_(plant),
      leases_(static_cast<size_t>(balancers), world->now()) {}

void SimulatedReplica::Start() {
  process.Start();
  ++epoch_;
  report_seq_ = 0;
  dying_ = false;
  stepping_ = false;
  if (fingerprint_changes_at_restart && epoch_ > 1) {
    settings.fingerprint = settings.fingerprint == "model-a" ? "model-b" : "model-a";
  }
  phase_ = balance::ReplicaPhase::kStarting;
  cached_.Clear();
  scheduler_ = std::make_unique<schedule::Scheduler>(schedule::SchedulerLimits{
      .tokens = 64,
      .sequences = settings.slots,
      .logit_rows = settings.slots,
      .context = 512,
      .blocks = settings.blocks,
  });
  process.After(world_->RandomBetween(absl::Milliseconds(200), absl::Seconds(1)), [this] {
    phase_ = balance::ReplicaPhase::kServing;
    Report();
  });
  ReportAndGoOn();
  CheckLeases();
}

void SimulatedReplica::KillRank(int rank) {
  if (!process.alive() || dying_) {
    return;
  }
  if (rank == 0 || process.paused()) {
    KillNow();
    return;
  }
  dying_ = true;
  ++deaths;
  phase_ = balance::ReplicaPhase::kLost;
  // Its control connection tells rank 0 after 5 to 27 ms, and the launcher ends it a second later.
  process.After(world_->RandomBetween(absl::Milliseconds(5), absl::Milliseconds(27)), [this] {
    for (const auto& [key, stream] : streams_) {
      Fail(*stream,
           Unavailable(kReasonRankLost, absl::StrCat("a rank of ", settings.name, " is gone")));
    }
    while (!streams_.empty()) {
      End(streams_.begin()->first, /*leak=*/false);
    }
    process.After(absl::Milliseconds(200), [this] { KillNow(); });
  });
}

void SimulatedReplica::KillNow() {
  if (!process.alive()) {
    return;
  }
  deaths += dying_ ? 0 : 1;
  process.Kill();
  phase_ = balance::ReplicaPhase::kLost;
  Clear();
  last_attempts_.clear();
  on_death();
  world_->At(world_->now() + restart_delay_ * (0.5 + world_->random.Uniform()),
             [this] { Start(); });
}

// Memory of a process that is gone; blocks go back first, leaked ones too.
void SimulatedReplica::Clear() {
  for (auto& [key, stream] : streams_) {
    ended_.push_back(std::move(stream));
  }
  streams_.clear();
  by_sequence_.clear();
  for (const auto& stream : ended_) {
    const schedule::SequencePhase phase = stream->sequence->phase();
    if (phase == schedule::SequencePhase::kWaiting || phase == schedule::SequencePhase::kRunning) {
      scheduler_->Remove(stream->sequence.get());
    }
  }
  ended_.clear();
  batch_.Clear();
  scheduler_.reset();
}

void SimulatedReplica::Drain() {
  if (!process.alive() || dying_) {
    return;
  }
  phase_ = balance::ReplicaPhase::kDraining;
  Report();
  process.After(absl::Milliseconds(500), [this] {
    if (streams_.empty()) {
      KillNow();
    } else {
      Drain();
    }
  });
}

Answer SimulatedReplica::AnswerTo(const ExecuteCall& call, Answer::Kind kind) const {
  Answer answer;
  answer.kind = kind;
  answer.key = call.key;
  answer.attempt = call.attempt;
  answer.fingerprint = settings.fingerprint;
  return answer;
}

void SimulatedReplica::Fail(const ExecuteCall& call, const absl::Status& status) {
  Answer answer = AnswerTo(call, Answer::Kind::kFailed);
  answer.status = status;
  send_answer(call.balancer, call.balancer_incarnation, answer);
}

void SimulatedReplica::Fail(const Stream& stream, const absl::Status& status) {
  Fail(stream.call, status);
}

void SimulatedReplica::OnExecute(const ExecuteCall& call) {
  const StreamKey key = {{call.balancer, call.balancer_incarnation}, call.key};
  if (call.epoch != epoch_) {
    Fail(call, WithReason(absl::FailedPreconditionError("another epoch"), kReasonResumeMismatch));
    return;
  }
  uint32_t& last = last_attempts_[key];
  if (call.attempt <= last) {
    Fail(call, WithReason(absl::AlreadyExistsError("an equal or later attempt was seen"),
                          kReasonRequestId));
    return;
  }
  last = call.attempt;
  if (streams_.contains(key)) {
    End(key, /*leak=*/false);
  }
  if (phase_ != balance::ReplicaPhase::kServing) {
    const bool starting = phase_ == balance::ReplicaPhase::kStarting;
    Fail(call, Unavailable(starting ? kReasonStarting
                           : dying_ ? kReasonRankLost
                                    : kReasonDraining,
                           "not serving"));
    return;
  }
  if (call.request->bad) {
    Fail(call, WithReason(absl::InvalidArgumentError("a bad request"), kReasonBadParameter));
    return;
  }
  if (static_cast<int64_t>(call.emitted.size()) >= call.request->Length()) {
    // Only the end was lost on the way: replaying the tokens shows that the answer is complete.
    send_answer(call.balancer, call.balancer_incarnation, AnswerTo(call, Answer::Kind::kAccepted));
    send_answer(call.balancer, call.balancer_incarnation, AnswerTo(call, Answer::Kind::kFinished));
    return;
  }
  if (static_cast<int32_t>(scheduler_->waiting().size()) >= settings.queue_max) {
    Fail(call, WithReason(absl::ResourceExhaustedError("the queue is full"), kReasonOverloaded));
    return;
  }
  auto stream = std::make_unique<Stream>();
  stream->call = call;
  stream->token_key = call.request->Key(settings.fingerprint);
  stream->length = call.request->Length();
  stream->next_position = static_cast<int64_t>(call.emitted.size());
  schedule::Request request;
  request.prompt = call.request->prompt;
  request.emitted = call.emitted;
  if (settings.caches_prefixes) {
    const auto hashes = balance::HashPrompt(0, call.request->tenant, request.prompt);
    stream->cached_tokens = std::min<int64_t>(cached_.Match(hashes.blocks) * balance::kHashTokens,
                                              static_cast<int64_t>(request.prompt.size()) - 1);
    cached_.Insert(hashes.blocks);
    // What is cached needs no rows: the sequence is as long as what must be computed.
    request.prompt.resize(request.prompt.size() - static_cast<size_t>(stream->cached_tokens));
  }
  stream->sequence = std::make_unique<schedule::Sequence>(std::move(request),
                                                          schedule::SequencePurpose::kGenerate);
  scheduler_->Add(stream->sequence.get());
  by_sequence_[stream->sequence.get()] = key;
  streams_[key] = std::move(stream);
  Step();
}

void SimulatedReplica::OnCancel(int balancer, uint64_t incarnation, balance::RequestKey key,
                                uint32_t attempt) {
  const StreamKey stream_key = {{balancer, incarnation}, key};
  const auto found = streams_.find(stream_key);
  if (found != streams_.end() && found->second->call.attempt == attempt) {
    End(stream_key, plant_ == Plant::kSlotLeak);
  }
}

void SimulatedReplica::OnLease(int balancer) {
  leases_[static_cast<size_t>(balancer)] = world_->now();
}

void SimulatedReplica::OnBalancerGone(int balancer) {
  std::vector<StreamKey> keys;
  for (const auto& [key, stream] : streams_) {
    if (key.first.first == balancer) {
      keys.push_back(key);
    }
  }
  for (const StreamKey& key : keys) {
    End(key, /*leak=*/false);
  }
}

void SimulatedReplica::CheckLeases() {
  for (size_t balancer = 0; balancer < leases_.size(); ++balancer) {
    if (world_->now() - leases_[balancer] > kLeaseTime) {
      OnBalancerGone(static_cast<int>(balancer));
    }
  }
  process.After(absl::Seconds(1), [this] { CheckLeases(); });
}

void SimulatedReplica::End(const StreamKey& key, bool leak) {
  std::unique_ptr<Stream> stream = std::move(streams_.at(key));
  streams_.erase(key);
  by_sequence_.erase(stream->sequence.get());
  if (!leak) {
    scheduler_->Remove(stream->sequence.get());
  }
  ended_.push_back(std::move(stream));
}

void SimulatedReplica::Step() {
  if (stepping_ || dying_ || !scheduler_->Next(++step_, &batch_)) {
    return;
  }
  stepping_ = true;
  for (const schedule::BatchEntry& entry : batch_.entries) {
    const auto found = by_sequence_.find(entry.sequence);
    if (found == by_sequence_.end()) {
      continue;  // a leaked one
    }
    Stream& stream = *streams_.at(found->second);
    if (stream.call.request->poison) {
      process.After(absl::Milliseconds(2), [this] { KillNow(); });
    }
    if (!stream.accepted && quirk != Quirk::kNeverAnswers) {
      stream.accepted = true;
      Answer answer = AnswerTo(stream.call, Answer::Kind::kAccepted);
      answer.cached_tokens = stream.cached_tokens;
      send_answer(stream.call.balancer, stream.call.balancer_incarnation, answer);
    }
  }
  const absl::Duration time =
      settings.step_scale * (settings.step_base + settings.step_token * batch_.tokens);
  process.After(quirk == Quirk::kSlow ? absl::Seconds(5) : time, [this] { FinishStep(); });
}

void SimulatedReplica::FinishStep() {
  stepping_ = false;
  for (const schedule::BatchEntry& entry : batch_.entries) {
    scheduler_->Complete(entry);
  }
  for (const schedule::BatchEntry& entry : batch_.entries) {
    const auto found = by_sequence_.find(entry.sequence);
    if (found == by_sequence_.end() || !entry.draws) {
      continue;
    }
    const StreamKey key = found->second;
    Stream& stream = *streams_.at(key);
    const auto& emitted = stream.call.emitted;
    const int32_t previous = stream.next_position == static_cast<int64_t>(emitted.size())
                                 ? (emitted.empty() ? -1 : emitted.back())
                                 : entry.sequence->tokens().back();
    const int32_t token = SimulatedRequest::Token(stream.token_key, stream.next_position, previous);
    ++tokens_computed;
    scheduler_->Append(entry.sequence, token);
    if (quirk == Quirk::kNeverAnswers) {
      ++stream.next_position;
    } else {
      Emit(stream, token);
    }
    if (stream.next_position >= stream.length) {
      if (quirk != Quirk::kNeverAnswers) {
        SendFinish(stream);
      }
      End(key, /*leak=*/false);
    }
  }
  if (plant_ != Plant::kSlotLeak) {
    ended_.clear();
  }
  Step();
}

void SimulatedReplica::Emit(Stream& stream, int32_t token) {
  Answer answer = AnswerTo(stream.call, Answer::Kind::kTokens);
  answer.first_position = stream.next_position++;
  answer.token_ids = {token};
  const bool wrongly = world_->random.Chance(0.1);
  if (quirk == Quirk::kSkips && wrongly) {
    return;
  }
  send_answer(stream.call.balancer, stream.call.balancer_incarnation, answer);
  if (quirk == Quirk::kRepeats && wrongly) {
    send_answer(stream.call.balancer, stream.call.balancer_incarnation, answer);
  }
}

void SimulatedReplica::SendFinish(Stream& stream) {
  Answer answer = AnswerTo(stream.call, Answer::Kind::kFinished);
  answer.generated_tokens = stream.next_position - static_cast<int64_t>(stream.call.emitted.size());
  if (quirk == Quirk::kMiscounts && world_->random.Chance(0.5)) {
    ++answer.generated_tokens;
  }
  send_answer(stream.call.balancer, stream.call.balancer_incarnation, answer);
  if (quirk == Quirk::kAfterFinish) {
    Answer late = AnswerTo(stream.call, Answer::Kind::kTokens);
    late.first_position = stream.next_position;
    late.token_ids = {1};
    send_answer(stream.call.balancer, stream.call.balancer_incarnation, late);
    send_answer(stream.call.balancer, stream.call.balancer_incarnation, answer);
  }
}

void SimulatedReplica::ReportAndGoOn() {
  Report();
  process.After(kReportPeriod, [this] { ReportAndGoOn(); });
}

void SimulatedReplica::Report() {
  for (int balancer = 0; balancer < static_cast<int>(leases_.size()); ++balancer) {
    ReportTo(balancer);
  }
}

void SimulatedReplica::ReportTo(int balancer) {
  balance::LoadReport report;
  report.epoch = epoch_;
  report.report_seq = ++report_seq_;
  report.phase = phase_;
  report.fingerprint = settings.fingerprint;
  report.running_sequences = static_cast<int64_t>(scheduler_->running().size());
  report.waiting_requests = static_cast<int64_t>(scheduler_->waiting().size());
  report.queued_tokens = scheduler_->queued_tokens();
  report.running_tokens = scheduler_->running_tokens();
  report.blocks_total = scheduler_->pool().blocks_total();
  report.blocks_free = scheduler_->pool().blocks_free();
  report.prefill_tokens_per_second =
      64 /
      absl::ToDoubleSeconds(settings.step_scale * (settings.step_base + settings.step_token * 64));
  report.step_time_p50 = settings.step_scale * (settings.step_base + settings.step_token * 4);
  report.new_requests_max = settings.queue_max - report.waiting_requests;
  if (quirk == Quirk::kLies) {
    switch (world_->random.Below(4)) {
      case 0:
        report.prefill_tokens_per_second = std::numeric_limits<double>::quiet_NaN();
        break;
      case 1:
        report.queued_tokens = -5;
        break;
      case 2:
        report.report_seq -= std::min<uint64_t>(report.report_seq, 3);
        break;
      default:
        report.queued_tokens = report.waiting_requests = report.running_sequences = 0;
        break;
    }
  }
  if (!world_->random.Chance(settings.report_loss)) {
    send_report(balancer, report);
  }
}

std::string SimulatedReplica::CheckBooks() const {
  if (scheduler_ == nullptr) {
    return "";
  }
  const size_t scheduled = scheduler_->running().size() + scheduler_->waiting().size();
  if (scheduled != streams_.size()) {
    return absl::StrFormat("replica %s schedules %d sequences for %d streams", settings.name,
                           scheduled, streams_.size());
  }
  int64_t blocks = 0;
  for (const schedule::Sequence* sequence : scheduler_->running()) {
    blocks += static_cast<int64_t>(sequence->blocks().blocks().size());
  }
  if (blocks != scheduler_->pool().blocks_taken()) {
    return absl::StrFormat("replica %s has %d blocks taken and %d in use", settings.name,
                           scheduler_->pool().blocks_taken(), blocks);
  }
  return "";
}

}  // namespace trireme::simulation

#include "runtime/serve/stream_session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {
namespace {

// A balancer's streams wait for a network, not for a step, and a thousand of them are open.
constexpr int64_t kBalancedTokensReserved = 16;

absl::Status CancelledByClient() {
  return WithReason(absl::CancelledError("the client cancelled the call"), kReasonByClient);
}

absl::Status NoSuchStream(absl::string_view why) {
  return WithReason(absl::NotFoundError(absl::StrCat("no stream to resume: ", why)),
                    kReasonRequest);
}

}  // namespace

StreamSession::StreamSession(Door* door, std::unique_ptr<StreamKind> kind, CallFacts facts)
    : door_(door),
      kind_(std::move(kind)),
      facts_(std::move(facts)),
      arrival_(door->clock().Now()) {}

void StreamSession::Open(std::shared_ptr<StreamWire> wire) {
  MutexLock lock(&mutex_);
  wire_ = std::move(wire);
}

absl::Time StreamSession::Deadline(absl::Duration budget) const {
  return arrival_ + std::min({budget, facts_.time_left, door_->options().request_time_max});
}

void StreamSession::Begin(const std::string& request_bytes) {
  {
    MutexLock lock(&mutex_);
    if (end_.has_value()) {
      return;
    }
  }
  const absl::StatusOr<const ReplicaFacade*> replica = door_->Ready();
  if (!replica.ok()) {
    End(replica.status());
    return;
  }
  absl::StatusOr<PreparedStream> prepared = kind_->Prepare(request_bytes, **replica);
  if (!prepared.ok()) {
    End(prepared.status());
    return;
  }
  if (absl::Status status = Submit(**replica, *std::move(prepared)); !status.ok()) {
    End(status);
  }
}

absl::Status StreamSession::Submit(const ReplicaFacade& replica, PreparedStream prepared) {
  if (door_->clock().Now() >= Deadline(prepared.budget)) {
    return WithReason(
        absl::DeadlineExceededError("the deadline passed before the request was started"),
        kReasonInQueue);
  }
  for (schedule::Request& request : prepared.requests) {
    request.deadline = Deadline(prepared.budget);
    request.delivery.tenant = facts_.tenant;
    request.delivery.explain = facts_.explain;
  }
  const absl::StatusOr<bool> entered = Enter(prepared);
  if (!entered.ok() || !*entered) {
    return entered.status();
  }
  for (size_t index = 0; index < prepared.requests.size(); ++index) {
    std::shared_ptr<engine::ResponseStream> stream;
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) {
        return absl::OkStatus();
      }
      stream = choices_[index].stream;
    }
    absl::Status status =
        replica.controller->Submit(std::move(prepared.requests[index]), std::move(stream));
    if (!status.ok()) {
      return status;
    }
  }
  door_->pump()->Wake(shared_from_this());
  return absl::OkStatus();
}

absl::StatusOr<bool> StreamSession::Enter(const PreparedStream& prepared) {
  if (absl::Status status = door_->live_calls().Add(prepared.live_id, weak_from_this());
      !status.ok()) {
    return status;
  }
  bool is_in = false;
  bool is_kept = false;
  {
    MutexLock lock(&mutex_);
    is_in = !end_.has_value();
    if (is_in) {
      live_id_ = prepared.live_id;
      lease_ = prepared.lease;
      is_live_ = true;
      resumable_ = prepared.resumable && door_->options().resume_grace > absl::ZeroDuration();
      is_kept_ = is_kept = resumable_;
      queued_noted_ = arrival_;
      AddChoices(prepared.requests);
    }
  }
  if (!is_in) {
    door_->live_calls().Remove(prepared.live_id);  // it ended before it was known
    return false;
  }
  if (!prepared.lease.empty()) {
    door_->leases()->Hold(prepared.lease, prepared.live_id);
    door_->pump()->Wake(door_->leases());
  }
  if (is_kept) {
    door_->resume_board().Put(prepared.live_id, shared_from_this());
  }
  return true;
}

void StreamSession::AddChoices(const std::vector<schedule::Request>& requests) {
  const bool is_balanced = door_->replica()->model.is_balanced;
  for (const schedule::Request& request : requests) {
    auto stream = std::make_shared<engine::ResponseStream>(
        is_balanced ? kBalancedTokensReserved : request.stopping.max_tokens);
    stream->SetListener([weak = weak_from_this(), is_balanced,
                         weak_pump = std::weak_ptr<StreamPump>(door_->pump())] {
      const std::shared_ptr<StreamPump> pump = weak_pump.lock();
      std::shared_ptr<StreamSession> self = weak.lock();
      if (pump == nullptr || self == nullptr) {
        return;
      }
      // An engine thread has steps to run; a balancer's is one of gRPC's, as good as the pump's.
      if (is_balanced) {
        pump->PumpHere(self);
      } else {
        pump->Wake(std::move(self));
      }
    });
    choices_.push_back({request, std::move(stream), 0, engine::Delta(), std::nullopt});
  }
}

absl::Status StreamSession::Attach(std::shared_ptr<StreamWire> wire, uint64_t after_seq,
                                   const std::string& tenant) {
  const absl::Time now = door_->clock().Now();
  {
    MutexLock lock(&mutex_);
    if (tenant != facts_.tenant || !resumable_) {
      return NoSuchStream("it has ended, was never here, or did not name its request_id");
    }
    if (after_seq > last_seq_) {
      return WithField(WithReason(absl::InvalidArgumentError(absl::StrCat(
                                      "after_seq is ", after_seq, " and the stream has only ",
                                      last_seq_, " events yet")),
                                  kReasonBadParameter),
                       "after_seq", absl::StrCat(after_seq, " is above ", last_seq_));
    }
    if (after_seq + 1 < first_seq_) {
      return NoSuchStream(
          absl::StrCat("events ", after_seq + 1, " to ", first_seq_ - 1, " are not kept any more"));
    }
    Detach(now,
           WithReason(absl::CancelledError("the stream goes on at another call"), kReasonByClient));
    wire_ = std::move(wire);
    written_seq_ = after_seq;
    WriteNext(now);
  }
  Settle();
  door_->pump()->Wake(shared_from_this());
  return absl::OkStatus();
}

absl::Time StreamSession::Pump(absl::Time now) {
  absl::Time due;
  {
    MutexLock lock(&mutex_);
    NoteSlowReader(now);
    if (!end_.has_value()) {
      if (wire_ == nullptr && now - detached_at_ >= door_->options().resume_grace) {
        Conclude(CancelledByClient(), now);
      } else if (wire_ != nullptr) {
        NoteWaiting(now);
        WriteNext(now);
      }
    }
    due = NextDue(now);
  }
  Settle();
  return due;
}

void StreamSession::NoteSlowReader(absl::Time now) {
  const absl::Duration patience = door_->options().slow_reader_timeout;
  if (wire_ == nullptr) {
    return;
  }
  if (!end_.has_value() && writing_ && now - write_started_ >= patience) {
    Conclude(WithReason(absl::AbortedError(absl::StrCat("the client has not read for ",
                                                        absl::FormatDuration(now - write_started_),
                                                        "; read the stream as it comes")),
                        kReasonSlowReader),
             now);
  }
  if (wire_finished_ && !cut_ && now - wire_finished_at_ >= patience) {
    // The status itself waits behind what the client does not read.
    cut_ = true;
    wire_->Cut();
  }
}

absl::Time StreamSession::NextDue(absl::Time now) const {
  const DoorOptions& options = door_->options();
  if (wire_ == nullptr) {
    if (!is_kept_) {
      return absl::InfiniteFuture();
    }
    return (end_.has_value() ? ended_at_ : detached_at_) + options.resume_grace;
  }
  if (wire_finished_) {
    return cut_ ? absl::InfiniteFuture() : wire_finished_at_ + options.slow_reader_timeout;
  }
  absl::Time due = absl::InfiniteFuture();
  if (writing_) {
    due = write_started_ + options.slow_reader_timeout;
  }
  if (!accepted_ && !choices_.empty()) {
    const absl::Time note = queued_noted_ + options.queued_after;
    due = std::min(due, note > now ? note : now + options.queued_after);
  }
  return due;
}

// The wire is called with the lock held, so that writes and the end come in the right order; gRPC
// answers on another thread or later on this one, never inside.
void StreamSession::WriteNext(absl::Time now) {
  if (wire_ == nullptr || writing_ || wire_finished_) {
    return;
  }
  if (!HasUnwritten() && !end_.has_value()) {
    CollectEvents();
  }
  if (HasUnwritten()) {
    ++written_seq_;
    writing_ = true;
    write_started_ = now;
    const std::string& event = events_[written_seq_ - first_seq_];
    if (finished_event_made_ && !HasUnwritten() && (!end_.has_value() || end_->ok())) {
      if (!end_.has_value()) {
        end_ = absl::OkStatus();
        ended_at_ = now;
      }
      wire_finished_ = true;
      wire_finished_at_ = now;
      wire_->WriteLast(event, Trailers());
    } else {
      wire_->Write(event);
    }
    DropEvents();
  } else if (end_.has_value()) {
    FinishWire(now);
  } else if (error_.has_value()) {
    Conclude(*error_, now);
  }
}

void StreamSession::Conclude(const absl::Status& status, absl::Time now) {
  if (end_.has_value()) {
    return;
  }
  end_ = status;
  ended_at_ = now;
  incident_ = door_->NoteIncident(status);
  for (const Choice& choice : choices_) {
    choice.stream->Cancel();
    if (!choice.ending.has_value()) {
      unwanted_ids_.push_back(choice.request.id);
    }
  }
  FinishWire(now);
}

void StreamSession::FinishWire(absl::Time now) {
  if (wire_ != nullptr && !wire_finished_) {
    wire_finished_ = true;
    wire_finished_at_ = now;
    wire_->Finish(*end_, Trailers());
  }
}

void StreamSession::OnWritten(const StreamWire* wire, bool ok) {
  const absl::Time now = door_->clock().Now();
  {
    MutexLock lock(&mutex_);
    if (wire_.get() != wire) {
      return;
    }
    writing_ = false;
    if (wire_finished_) {
      return;
    }
    if (ok) {
      WriteNext(now);
    } else {
      Lose(now);
    }
  }
  Settle();
}

void StreamSession::OnLost(const StreamWire* wire) {
  {
    MutexLock lock(&mutex_);
    if (wire_.get() != wire || wire_finished_) {
      return;
    }
    Lose(door_->clock().Now());
  }
  Settle();
  door_->pump()->Wake(shared_from_this());
}

void StreamSession::Lose(absl::Time now) {
  // gRPC tells a cancel, a broken connection and a passed deadline alike.
  if (facts_.time_left != absl::InfiniteDuration() && now >= arrival_ + facts_.time_left) {
    Conclude(WithReason(absl::DeadlineExceededError("the client's deadline passed"),
                        accepted_ ? kReasonRunning : kReasonInQueue),
             now);
  } else if (resumable_) {
    Detach(now, CancelledByClient());
  } else {
    Conclude(CancelledByClient(), now);
  }
}

// The wire goes; the stream stays for the grace time.
void StreamSession::Detach(absl::Time now, const absl::Status& why) {
  if (wire_ != nullptr) {
    if (!wire_finished_) {
      wire_->Finish(why, {});
    }
    wire_->Cut();
    wire_ = nullptr;
  }
  writing_ = false;
  wire_finished_ = false;
  cut_ = false;
  detached_at_ = now;
}

void StreamSession::OnGone(const StreamWire* wire) {
  {
    MutexLock lock(&mutex_);
    if (wire_.get() != wire) {
      return;
    }
    wire_ = nullptr;
    writing_ = false;
    wire_finished_ = false;
    cut_ = false;
    detached_at_ = door_->clock().Now();
  }
  Settle();
  if (door_->options().resume_grace > absl::ZeroDuration()) {
    door_->pump()->Wake(shared_from_this());  // for the timer
  }
}

void StreamSession::End(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    Conclude(status, door_->clock().Now());
  }
  Settle();
  door_->pump()->Wake(shared_from_this());
}

void StreamSession::Settle() {
  std::vector<std::string> unwanted_ids;
  std::string live_id;
  std::string lease;
  bool leaves = false;
  bool is_kept_no_more = false;
  bool is_kept_ended = false;
  std::optional<RequestRecord> record;
  {
    MutexLock lock(&mutex_);
    unwanted_ids.swap(unwanted_ids_);
    live_id = live_id_;
    if (end_.has_value() && !is_recorded_) {
      is_recorded_ = true;
      record = Record();
    }
    const bool is_over = end_.has_value() && wire_ == nullptr;
    if (is_over && is_live_) {
      is_live_ = false;
      leaves = true;
      lease = lease_;
      is_kept_ended = is_kept_;
    }
    if (is_over && is_kept_ && door_->clock().Now() - ended_at_ >= door_->options().resume_grace) {
      is_kept_ = false;
      is_kept_no_more = true;
    }
  }
  if (record.has_value()) {
    door_->journal().Add(*std::move(record));
  }
  // A stream's flag is seen at the next step; this also wakes an engine that has none to do.
  for (const std::string& id : unwanted_ids) {
    door_->replica()->controller->Cancel(id);
  }
  if (leaves) {
    door_->live_calls().Remove(live_id);
    if (!lease.empty()) {
      door_->leases()->Release(lease, live_id);
    }
  }
  if (is_kept_no_more) {
    door_->resume_board().Remove(live_id, this);
  } else if (is_kept_ended) {
    door_->resume_board().NoteEnded(live_id, this);
  }
}

}  // namespace trireme::serve

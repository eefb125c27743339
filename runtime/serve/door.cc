#include "runtime/serve/door.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"

namespace trireme::serve {
namespace {

int64_t LongestTokenBytes(const text::Tokenizer& tokenizer) {
  size_t longest = 1;
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    longest = std::max(longest, tokenizer.TokenBytes(id).size());
  }
  return static_cast<int64_t>(longest);
}

}  // namespace

Door::Door(const DoorOptions& options, Clock* clock)
    : options_(options),
      clock_(clock),
      journal_(options.metrics, options.journal_records_max),
      leases_(std::make_shared<LeaseBoard>(options.lease_patience, clock, &live_calls_)),
      random_(options.seed),
      pump_(std::make_shared<StreamPump>(clock)),
      tasks_(options.text_threads, options.queued_texts_max) {}

void Door::Open(ReplicaFacade replica) {
  CHECK(replica.controller != nullptr);
  CHECK_GT(replica.model.context_length, 1);
  CHECK_GT(replica.model.vocabulary_size, 0);
  RequestLimits& limits = replica.model.limits;
  limits.request_bytes_max = options_.request_bytes_max;
  if (limits.prompt_bytes_max == 0) {
    limits.prompt_bytes_max = options_.request_bytes_max;
    if (replica.tokenizer != nullptr) {
      limits.prompt_bytes_max =
          std::min(limits.prompt_bytes_max,
                   replica.model.context_length * LongestTokenBytes(*replica.tokenizer));
    }
  }
  if (replica.epoch == 0) {
    // Nobody counts the starts: the time of day grows from one to the next.
    replica.epoch = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now()));
  }
  MutexLock lock(&mutex_);
  CHECK(replica_ == nullptr);
  replica_ = std::make_unique<const ReplicaFacade>(std::move(replica));
  if (phase_ == Phase::kStarting) {
    phase_ = Phase::kServing;
  }
}

void Door::SetDraining() {
  MutexLock lock(&mutex_);
  if (phase_ != Phase::kLost) {
    phase_ = Phase::kDraining;
  }
}

void Door::SetLost(const absl::Status& status) {
  CHECK(!status.ok());
  MutexLock lock(&mutex_);
  if (phase_ != Phase::kLost) {
    phase_ = Phase::kLost;
    lost_status_ = status;
  }
}

Phase Door::phase() const {
  MutexLock lock(&mutex_);
  return phase_;
}

absl::StatusOr<const ReplicaFacade*> Door::Ready() const {
  MutexLock lock(&mutex_);
  switch (phase_) {
    case Phase::kServing:
      return replica_.get();
    case Phase::kStarting:
      return WithReason(absl::UnavailableError("this replica is still starting; try again soon"),
                        kReasonStarting);
    case Phase::kDraining:
      return WithReason(absl::UnavailableError("this replica is draining; try another one"),
                        kReasonDraining);
    case Phase::kLost:
      return lost_status_;
  }
  return absl::InternalError("no such phase");
}

const ReplicaFacade* Door::replica() const {
  MutexLock lock(&mutex_);
  return replica_.get();
}

uint64_t Door::MakeSeed() {
  MutexLock lock(&mutex_);
  return random_();
}

std::string Door::MakeRequestId() {
  MutexLock lock(&mutex_);
  const uint64_t high = random_();
  return absl::StrFormat("%016x%016x", high, random_());
}

std::string Door::NoteIncident(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInternal && status.code() != absl::StatusCode::kUnknown) {
    return "";
  }
  const std::string incident = MakeRequestId().substr(0, 12);
  Log(LogLevel::kError, absl::StrCat("incident=", incident, " ", status.ToString()));
  return incident;
}

}  // namespace trireme::serve

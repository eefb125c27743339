#include "tests/support/faulty_communicator.h"

#include <utility>

#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace trireme::comm {

FaultyCommunicator::FaultyCommunicator(std::unique_ptr<Communicator> inner, const FaultPlan& plan)
    : inner_(std::move(inner)), plan_(plan), random_(plan.seed) {}

absl::Status FaultyCommunicator::BeforeVerb() {
  const int64_t verb = ++verbs_;
  absl::Duration delay = absl::ZeroDuration();
  {
    const std::lock_guard lock(mutex_);
    if (random_() % 4 == 0) {
      delay = plan_.delay_max * static_cast<double>(random_() % 1000) / 1000.0;
    }
  }
  absl::SleepFor(delay);
  if (verb != plan_.fault_at_verb) {
    return absl::OkStatus();
  }
  if (plan_.fault == FaultPlan::Fault::kFail) {
    Abort(absl::UnavailableError("injected fault"));
  }
  std::unique_lock lock(mutex_);
  aborted_.wait(lock, [this] { return abort_.IsSet(); });
  return abort_.Get();
}

absl::Status FaultyCommunicator::AllReduceSum(absl::Span<float> values) {
  RETURN_IF_ERROR(BeforeVerb());
  return inner_->AllReduceSum(values);
}

absl::Status FaultyCommunicator::AllGather(absl::Span<const std::byte> mine,
                                           absl::Span<std::byte> all) {
  RETURN_IF_ERROR(BeforeVerb());
  return inner_->AllGather(mine, all);
}

absl::Status FaultyCommunicator::AllGatherVariable(absl::Span<const std::byte> mine,
                                                   absl::Span<const int64_t> byte_counts,
                                                   absl::Span<std::byte> all) {
  RETURN_IF_ERROR(BeforeVerb());
  return inner_->AllGatherVariable(mine, byte_counts, all);
}

absl::Status FaultyCommunicator::Broadcast(absl::Span<std::byte> bytes, int root) {
  RETURN_IF_ERROR(BeforeVerb());
  return inner_->Broadcast(bytes, root);
}

absl::Status FaultyCommunicator::Send(int peer, absl::Span<const std::byte> bytes) {
  RETURN_IF_ERROR(BeforeVerb());
  return inner_->Send(peer, bytes);
}

absl::Status FaultyCommunicator::Receive(int peer, absl::Span<std::byte> bytes) {
  RETURN_IF_ERROR(BeforeVerb());
  return inner_->Receive(peer, bytes);
}

absl::Status FaultyCommunicator::Barrier() {
  RETURN_IF_ERROR(BeforeVerb());
  return inner_->Barrier();
}

void FaultyCommunicator::Abort(absl::Status reason) {
  {
    const std::lock_guard lock(mutex_);
    abort_.Set(reason);
  }
  aborted_.notify_all();
  inner_->Abort(std::move(reason));
}

}  // namespace trireme::comm

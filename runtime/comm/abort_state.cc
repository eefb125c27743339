#include "runtime/comm/abort_state.h"

#include <utility>

#include "runtime/base/check.h"

namespace trireme::comm {

bool AbortState::Set(absl::Status reason) {
  CHECK(!reason.ok());
  const std::lock_guard lock(mutex_);
  if (!reason_.ok()) {
    return false;
  }
  reason_ = std::move(reason);
  is_set_.store(true, std::memory_order_release);
  return true;
}

absl::Status AbortState::Get() const {
  if (!IsSet()) {
    return absl::OkStatus();
  }
  const std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace trireme::comm

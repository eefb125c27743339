#include "runtime/serve/lease_board.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"

namespace trireme::serve {

LeaseBoard::LeaseBoard(absl::Duration patience, Clock* clock, LiveCalls* live_calls)
    : patience_(patience), clock_(*clock), live_calls_(*live_calls) {}

void LeaseBoard::Hold(const std::string& lease, const std::string& live_id) {
  const absl::Time now = clock_.Now();
  MutexLock lock(&mutex_);
  Lease& entry = leases_[lease];
  entry.heard = now;
  entry.live_ids.insert(live_id);
}

void LeaseBoard::Release(const std::string& lease, const std::string& live_id) {
  MutexLock lock(&mutex_);
  const auto found = leases_.find(lease);
  if (found != leases_.end()) {
    found->second.live_ids.erase(live_id);
    if (found->second.live_ids.empty()) {
      leases_.erase(found);
    }
  }
}

void LeaseBoard::Ping(const std::string& lease) {
  const absl::Time now = clock_.Now();
  MutexLock lock(&mutex_);
  const auto found = leases_.find(lease);
  if (found != leases_.end()) {
    found->second.heard = now;
  }
}

absl::Time LeaseBoard::Pump(absl::Time now) {
  std::vector<std::pair<std::string, Lease>> silent;
  absl::Time next = absl::InfiniteFuture();
  {
    MutexLock lock(&mutex_);
    for (auto& [name, lease] : leases_) {
      if (now - lease.heard >= patience_) {
        silent.emplace_back(name, std::move(lease));
      } else {
        next = std::min(next, lease.heard + patience_);
      }
    }
    for (const auto& [name, lease] : silent) {
      leases_.erase(name);
    }
  }
  for (const auto& [name, lease] : silent) {
    Log(LogLevel::kWarning,
        absl::StrCat("lease ended lease=", name, " attempts=", lease.live_ids.size()));
    for (const std::string& id : lease.live_ids) {
      live_calls_.EndOne(
          id, WithReason(absl::CancelledError(absl::StrCat("the balancer has not been heard for ",
                                                           absl::FormatDuration(patience_))),
                         kReasonByClient));
    }
  }
  return next;
}

}  // namespace trireme::serve

#include "launcher/restart_history.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "launcher/exit_codes.h"

namespace trireme::launcher {
namespace {

// A second try would end the same way: somebody has to change something first.
bool IsHopeless(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kUsage:
    case ExitCode::kBadCheckpoint:
    case ExitCode::kMissingFile:
    case ExitCode::kDoesNotFit:
    case ExitCode::kPermission:
    case ExitCode::kBadConfiguration:
      return true;
    default:
      return false;
  }
}

}  // namespace

RestartDecision RestartHistory::OnFailure(int code, double uniform, absl::Time now) {
  codes_.emplace_back(now, code);
  while (codes_.front().first < now - rule_.failures_window) {
    codes_.pop_front();
  }
  if (IsHopeless(code)) {
    return {.why = absl::StrFormat("code=%d: a new start would end the same way", code)};
  }
  const auto same = std::count_if(codes_.begin(), codes_.end(),
                                  [code](const auto& entry) { return entry.second == code; });
  if (same >= rule_.failures_max) {
    return {.why = absl::StrFormat("code=%d: %d times within %s", code, same,
                                   absl::FormatDuration(rule_.failures_window))};
  }
  absl::Duration backoff = rule_.backoff_min;
  for (int i = 0; i < failures_ && backoff < rule_.backoff_max; ++i) {
    backoff *= 2;
  }
  ++failures_;
  return {.backoff = std::min(backoff, rule_.backoff_max) * (0.75 + 0.5 * uniform)};
}

}  // namespace trireme::launcher

// RestartHistory: how often a child has failed of late, and whether and when it starts again. Pure.
#ifndef TRIREME_LAUNCHER_RESTART_HISTORY_H_
#define TRIREME_LAUNCHER_RESTART_HISTORY_H_

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "topology/cluster.h"

namespace trireme::launcher {

struct RestartDecision {
  std::optional<absl::Duration> backoff;  // from now; unset: given up
  std::string why;                        // when given up
};

class RestartHistory {
 public:
  RestartHistory() = default;
  explicit RestartHistory(const topology::RestartRule& rule) : rule_(rule) {}

  // It ended with `code`, not 0. The backoff doubles with each failure in a row up to the rule's
  // most, give or take a quarter (`uniform`, in [0, 1)), so that children which failed together do
  // not start together. Given up: a code that a new start cannot change (usage, files, memory,
  // permission, configuration), and the same code too often within the window.
  RestartDecision OnFailure(int code, double uniform, absl::Time now);

  // It served long enough: the next failure is the first in a row.
  void OnStable() { failures_ = 0; }

 private:
  topology::RestartRule rule_;
  int failures_ = 0;                              // in a row
  std::deque<std::pair<absl::Time, int>> codes_;  // failures within the window
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_RESTART_HISTORY_H_

// What a supervisor shows of its fleet, as a value, and the table that people read: of `trireme up`
// on a terminal, of `trireme status` and `trireme top`.
#ifndef TRIREME_LAUNCHER_FLEET_VIEW_H_
#define TRIREME_LAUNCHER_FLEET_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace trireme::launcher {

struct RankView {
  std::string host;  // empty: not heard of
  int64_t process = 0;
  std::string phase;  // of the start, the last one it reported
  int loaded_percent = 0;
  int64_t weight_bytes = 0;
};

struct LoadView {
  int64_t running_sequences = 0;
  int64_t waiting_requests = 0;
  int64_t queued_tokens = 0;
  int64_t kv_blocks_total = 0;
  int64_t kv_blocks_free = 0;
  uint64_t step = 0;
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;  // from steps and running sequences, since the report before
  absl::Duration step_time_p50;
  absl::Duration step_time_p99;
  int64_t latency_streams = 0;     // ended ones that the next four are of
  absl::Duration first_token_p50;  // from arrival
  absl::Duration first_token_p99;
  absl::Duration token_p50;  // each after the first
  absl::Duration token_p99;
};

struct ChildView {
  std::string name;
  std::string kind;   // replica, balancer
  std::string state;  // NameOf(ChildState)
  std::string phase;  // of the start
  uint64_t epoch = 0;
  int64_t restarts = 0;
  std::optional<int> exit_code;  // of the last end
  std::string reason;            // of the last end, or why it waits
  std::string address;
  absl::Duration in_state;
  std::vector<RankView> ranks;
  std::optional<LoadView> load;  // while it serves
};

struct FleetView {
  std::string name;
  absl::Duration uptime;
  bool is_stopping = false;
  std::vector<ChildView> children;
};

// A line of each child; below one that starts, how far its ranks are; below one that ended badly,
// why. Ends with a line break.
std::string FleetTable(const FleetView& view);

// A line of each child with its load, and of each rank with its place. Ends with a line break.
std::string FleetLoadTable(const FleetView& view);

// One JSON object, one line.
std::string FleetJson(const FleetView& view);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_VIEW_H_

// What a replica says of itself on its load stream, as a plain value: the balancer's core knows no
// wire format. A report is a claim of another process: AcceptReport decides whether it may be
// believed, and what the balancer itself has sent since then is always counted on top.
#ifndef TRIREME_RUNTIME_BALANCE_LOAD_REPORT_H_
#define TRIREME_RUNTIME_BALANCE_LOAD_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace trireme::balance {

enum class ReplicaPhase : uint8_t { kStarting, kServing, kDraining, kLost };

struct LoadReport {
  uint64_t epoch = 0;       // of the start of the replica; grows with each restart
  uint64_t report_seq = 0;  // grows within an epoch
  ReplicaPhase phase = ReplicaPhase::kStarting;
  int64_t running_sequences = 0;
  int64_t waiting_requests = 0;  // in the replica's own queue
  int64_t queued_tokens = 0;     // known tokens that are not computed yet
  int64_t running_tokens = 0;    // positions held in KV
  int64_t blocks_total = 0;
  int64_t blocks_free = 0;
  int64_t blocks_reclaimable = 0;
  double prefill_tokens_per_second = 0;  // 0: not measured yet
  absl::Duration step_time_p50;
  double weight = 1;             // share of the work it wants, in (0, 1]
  int64_t new_requests_max = 0;  // places left in its queue
  std::string fingerprint;       // of its arithmetic and model; empty: unknown
};

// OK when `report` can be true and is newer than the last accepted one of its replica, which had
// `last_epoch` and `last_seq` (0, 0: none yet). InvalidArgument names what is wrong: a number that
// is negative, infinite or not a number, more free blocks than there are, a weight outside (0, 1],
// an older epoch, a sequence number that does not grow.
absl::Status AcceptReport(const LoadReport& report, uint64_t last_epoch, uint64_t last_seq);

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_LOAD_REPORT_H_

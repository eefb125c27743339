// The knobs of the balancer with their defaults; some may change (BalancerCore::Reconfigure).
#ifndef TRIREME_RUNTIME_BALANCE_BALANCER_OPTIONS_H_
#define TRIREME_RUNTIME_BALANCE_BALANCER_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace trireme::balance {

// How far a replica is believed.
struct HealthOptions {
  absl::Duration stale_after = absl::Seconds(1);    // without a report: trust own counters only
  absl::Duration suspect_after = absl::Seconds(3);  // nothing new is sent; streams move away
  // A replica that was added just now may be waited for; later on, nobody there is an error at
  // once.
  absl::Duration first_report_wait = absl::Seconds(1);
  absl::Duration slow_start = absl::Seconds(30);  // until a new replica gets its full share
  double slow_start_share = 0.1;                  // that it begins with
  int failures_to_open = 5;                       // in a row, of the kinds that blame the replica
  int successes_to_close = 3;                     // probes, one at a time
  absl::Duration open_for = absl::Seconds(5);     // doubles up to open_for_max; plus jitter
  absl::Duration open_for_max = absl::Seconds(60);
  double ejected_share_max = 0.5;  // of the replicas; never the last one
  // An attempt that brings nothing for so long is taken away from its replica.
  absl::Duration first_token_timeout = absl::Seconds(60);
  absl::Duration next_token_timeout = absl::Seconds(15);
};

struct PickOptions {
  double bounded_load = 1.25;  // times the mean: more goes to the next replica of the prefix
  double explore = 0.01;       // share of picks that try any replica
  // Requests of ours and others that may wait at a replica; the rest waits here, where order,
  // fairness and a change of mind are possible.
  int64_t waiting_at_replica_max = 4;
  // So much slower, and a step, may the replica that holds the prefix be and still be taken.
  absl::Duration affinity_slack = absl::Milliseconds(20);
};

// Limits of one tenant; infinite when not set.
struct TenantLimits {
  double weight = 1;  // share of the service under contention
  double requests_per_second = std::numeric_limits<double>::infinity();
  double tokens_per_second = std::numeric_limits<double>::infinity();  // prompt and generated
  int64_t concurrent_requests = std::numeric_limits<int64_t>::max();
};

struct AdmissionOptions {
  int64_t queued_requests_max = 1024;
  TenantLimits default_limits;
  absl::flat_hash_map<std::string, TenantLimits> tenants;
};

struct RetryOptions {
  double share = 0.1;  // retries of all requests in the window
  int64_t retries_min = 3;
  absl::Duration window = absl::Seconds(10);
  int retries_per_request = 2;  // of attempts that brought nothing
  int resumes_per_request = 3;  // of attempts that brought tokens
  // How long a request that was under way waits for a replica that can take it.
  absl::Duration patience = absl::Seconds(60);
  absl::Duration quarantine = absl::Minutes(10);
};

struct BalancerOptions {
  HealthOptions health;
  PickOptions pick;
  AdmissionOptions admission;
  RetryOptions retry;
  // Keys the hash of prompts; the same in all balancers of a fleet, so that they agree on replicas.
  uint64_t hash_seed = 0;
  uint64_t random_seed = 1;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_BALANCER_OPTIONS_H_

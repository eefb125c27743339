// What a running balancer takes over from its topology file when it is told to (Admin.Reload,
// SIGHUP): policy, retries and the queue. All or nothing: an error leaves in force what is.
//
// What needs a restart is refused by name, not ignored: another set of replicas, or the settings of
// the door (resume_grace).
#ifndef TRIREME_LAUNCHER_BALANCER_RELOAD_H_
#define TRIREME_LAUNCHER_BALANCER_RELOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/balance/balancer_options.h"
#include "runtime/balance/forwarding_controller.h"
#include "runtime/base/mutex.h"
#include "topology/cluster.h"

namespace trireme::launcher {

// What only a restart changes, as this process was started.
struct BalancerFixture {
  std::vector<balance::ReplicaAddress> replicas;
  absl::Duration resume_grace;
};

struct BalancerChange {
  balance::BalancerOptions options;  // those in force, with the file's on top
  std::vector<std::string> changes;  // "policy.explore: 0.01 -> 0.05"; empty: nothing differs
};

// FailedPrecondition naming what needs a restart, InvalidArgument for a file without a balancer.
absl::StatusOr<BalancerChange> BalancerChangeOf(const topology::ClusterFile& file,
                                                const BalancerFixture& fixture,
                                                const balance::BalancerOptions& in_force);

// Any thread.
class BalancerReload {
 public:
  using Apply = std::function<void(const balance::BalancerOptions& options)>;

  // `apply` puts options in force; called under a lock, so it must not reload.
  BalancerReload(std::string path, BalancerFixture fixture, balance::BalancerOptions in_force,
                 Apply apply);

  struct Outcome {
    std::vector<std::string> changes;
    uint64_t version = 0;  // how often settings have changed since the start
  };

  // Reads the file and puts it in force, or with `dry_run` only says what would change. Errors as
  // BalancerChangeOf and ReadFleetFile. Blocks for the file. Writes a line to the log.
  absl::StatusOr<Outcome> Reload(bool dry_run);

 private:
  absl::StatusOr<Outcome> TryReload(bool dry_run);

  const std::string path_;
  const BalancerFixture fixture_;
  const Apply apply_;
  Mutex mutex_;
  balance::BalancerOptions in_force_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_BALANCER_RELOAD_H_

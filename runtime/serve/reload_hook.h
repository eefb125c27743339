// How Admin.Reload reaches whoever keeps the process's configuration.
#ifndef TRIREME_RUNTIME_SERVE_RELOAD_HOOK_H_
#define TRIREME_RUNTIME_SERVE_RELOAD_HOOK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trireme::serve {

struct ReloadOutcome {
  std::vector<std::string> changes;  // "balancer.policy.explore: 0.01 -> 0.05"
  uint64_t version = 0;              // how often settings have changed since the start
};

// Reads the configuration again and puts all of it in force, or with `dry_run` only says what would
// change. Any error leaves in force what is. Any thread; may block for a file.
using ReloadHook = std::function<absl::StatusOr<ReloadOutcome>(bool dry_run)>;

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_RELOAD_HOOK_H_

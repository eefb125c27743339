// The flags with which every long-lived process (serve, balance, up) says what it does: its log
// and its metrics.
#ifndef TRIREME_LAUNCHER_OBSERVE_OPTIONS_H_
#define TRIREME_LAUNCHER_OBSERVE_OPTIONS_H_

#include <vector>

#include "absl/status/status.h"
#include "runtime/base/metrics.h"

namespace trireme::launcher {

// Names of the flags, for a subcommand's list: `flags` and these.
std::vector<const char*> ObserveFlags(std::vector<const char*> flags);

// Sets the log's level and form. InvalidArgument naming the flag and what was wanted.
absl::Status ApplyLogFlags();

// Serves `metrics` over HTTP where --metrics-listen says; no flag, no port. FailedPrecondition when
// the address cannot be taken.
absl::Status ListenForScrapes(Metrics* metrics);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_OBSERVE_OPTIONS_H_

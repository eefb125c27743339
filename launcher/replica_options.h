// The flags that say which model runs and how it is cut, shared by every subcommand that runs one.
#ifndef TRIREME_LAUNCHER_REPLICA_OPTIONS_H_
#define TRIREME_LAUNCHER_REPLICA_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/rank.h"

namespace trireme::launcher {

// Names of the flags, for a subcommand's list.
std::vector<const char*> ReplicaFlags(std::vector<const char*> further);

// InvalidArgument naming the first of those flags (--model too) that was changed, where no replica
// of one's own is started; `why` follows the name.
absl::Status RefuseReplicaFlags(absl::string_view why);

struct ReplicaFlagValues {
  std::string model;
  engine::RankOptions ranks;       // threads: the most of any stage
  std::vector<int> stage_threads;  // [stages]: of each rank, for ranks that are processes
};

// InvalidArgument naming the flag whose value is out of range.
absl::StatusOr<ReplicaFlagValues> ReadReplicaFlags();

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_REPLICA_OPTIONS_H_

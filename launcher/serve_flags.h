// What `trireme serve` is told besides the model: its place in a fleet (name, epoch), the limits of
// its start, heartbeats and drain, and the cores of its ranks. The supervisor sets all of them from
// the topology file; by hand none is needed.
#ifndef TRIREME_LAUNCHER_SERVE_FLAGS_H_
#define TRIREME_LAUNCHER_SERVE_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/engine/local_replica.h"

namespace trireme::launcher {

struct ServeFlagValues {
  std::string replica;  // its name in the fleet; empty outside one
  uint64_t epoch = 0;   // of this start; 0: requests of any epoch are answered
  absl::Duration launch_limit;
  absl::Duration connect_limit;
  absl::Duration drain_announce;
  absl::Duration drain_deadline;
  engine::LinkOptions links;
  std::vector<std::vector<int>> rank_cores;  // [ranks]; empty: not bound
  std::string fault_folder;                  // of fault_injection.h; empty: none
};

// Names of the flags, added to a subcommand's list.
std::vector<const char*> ServeFlags(std::vector<const char*> further);

// InvalidArgument naming the flag whose value is out of range; `ranks` is how many the layout has.
absl::StatusOr<ServeFlagValues> ReadServeFlags(int ranks);

// This process's rank as mpirun or srun put it into the environment, before any MPI call; 0 without
// a launcher.
int RankFromEnvironment();

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_SERVE_FLAGS_H_

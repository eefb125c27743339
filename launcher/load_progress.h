// Shows how far the reading of weights is (a bar on a terminal, one line per 10 % elsewhere) and
// what the ranks hold.
#ifndef TRIREME_LAUNCHER_LOAD_PROGRESS_H_
#define TRIREME_LAUNCHER_LOAD_PROGRESS_H_

#include <string>

#include "runtime/engine/replica.h"
#include "runtime/weights/load_shard.h"

namespace trireme::launcher {

// For stderr. `label` stands before each line, such as "rank 1: loading".
weights::LoadProgress ShowProgress(std::string label);

// One line a rank on stderr: bytes of weights, KV and workspace, exact.
void PrintRanks(const engine::ReplicaInfo& info);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_LOAD_PROGRESS_H_

// Fills a rank's shard by its plan: reads only the rank's own slices from the mapped file and packs
// them.
#ifndef TRIREME_RUNTIME_WEIGHTS_LOAD_SHARD_H_
#define TRIREME_RUNTIME_WEIGHTS_LOAD_SHARD_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/shard.h"
#include "runtime/weights/shard_plan.h"

namespace trireme::weights {

// Called now and then from one of the loading threads, never two at once; done == total comes last.
using LoadProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// ResourceExhausted when the arena does not fit, FailedPrecondition when the file changed
// meanwhile, DataLoss when a quantised tensor holds what is no number. `threads` >= 1 pack at a
// time. The checkpoint may be closed afterwards.
absl::StatusOr<Shard> LoadShard(const Checkpoint& checkpoint, const ShardPlan& plan,
                                const kernels::KernelTable& table, int threads,
                                const LoadProgress& progress);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_LOAD_SHARD_H_

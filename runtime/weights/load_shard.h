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

// What to do with a file that holds weights which are NaN or infinite (finite_scan.h).
enum class BadWeights : uint8_t {
  kWarn,    // name them in the log; requests that meet them end, the others go on
  kRefuse,  // do not load
};

struct LoadOptions {
  int threads = 1;  // that pack at a time
  BadWeights bad_weights = BadWeights::kWarn;
  LoadProgress progress;  // may be null
};

// ResourceExhausted when the arena does not fit, FailedPrecondition when the file changed
// meanwhile, DataLoss when a quantised tensor holds what is no number, or any tensor where such
// weights are refused. Beside the arena each thread holds about a MiB. The checkpoint may be closed
// afterwards.
absl::StatusOr<Shard> LoadShard(const Checkpoint& checkpoint, const ShardPlan& plan,
                                const kernels::KernelTable& table, const LoadOptions& options);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_LOAD_SHARD_H_

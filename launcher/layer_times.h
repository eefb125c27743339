// How long a layer of a model takes on this host, measured: the planner's predictions start from
// it. Loads a few layers (all of a small model), runs them for some tenths of a second, and forgets
// them.
#ifndef TRIREME_LAUNCHER_LAYER_TIMES_H_
#define TRIREME_LAUNCHER_LAYER_TIMES_H_

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/model/context.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::launcher {

struct LayerTimesQuestion {
  int tensor_ranks = 1;
  int threads = 1;  // of each rank
  kernels::KeyValueFormat kv_format = kernels::KeyValueFormat::kF16;
  model::ActivationMode activations = model::ActivationMode::kAuto;
};

// Seconds that a quarter of the runs stay within, with the ranks as threads of this process.
struct LayerTimes {
  double decode_layer = 0;             // one layer, one token
  double output = 0;                   // the output matrix, one token
  double prefill_layer = 0;            // one layer, one token of a chunk
  double stream_bytes_per_second = 0;  // memory read by as many threads
};

// Errors: those of loading (ResourceExhausted, DataLoss), InvalidArgument when the model cannot be
// cut so.
absl::StatusOr<LayerTimes> MeasureLayerTimes(const weights::Checkpoint& checkpoint,
                                             const LayerTimesQuestion& question);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_LAYER_TIMES_H_

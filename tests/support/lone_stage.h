// A whole model on one rank, driven by hand: opens a checkpoint, loads it and runs one sequence in
// chunks.
#ifndef TRIREME_TESTS_SUPPORT_LONE_STAGE_H_
#define TRIREME_TESTS_SUPPORT_LONE_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/comm/self_communicator.h"
#include "runtime/model/activations.h"
#include "runtime/model/context.h"
#include "runtime/model/stage.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/shard.h"

namespace trireme::testing {

struct LoneStageOptions {
  std::string kernels = {};                     // table; empty: the best one
  const kernels::KernelTable* table = nullptr;  // in the place of a named one
  model::ActivationMode activations = model::ActivationMode::kAuto;
  kernels::KeyValueFormat kv_format = kernels::KeyValueFormat::kF32;
  int64_t chunk = 64;  // tokens of one step
  int threads = 1;
  int64_t context = 0;  // positions that the model is to serve; 0: those it was trained for
};

class LoneStage {
 public:
  LoneStage(const std::string& path, const LoneStageOptions& options);

  const weights::Checkpoint& checkpoint() const { return *checkpoint_; }

  // Logits of every position, [tokens * vocabulary], of a fresh sequence.
  std::vector<float> Logits(absl::Span<const int32_t> token_ids);

 private:
  const LoneStageOptions options_;
  std::unique_ptr<weights::Checkpoint> checkpoint_;
  spec::ModelSpec model_;
  const kernels::KernelTable* table_;
  weights::Shard shard_;
  std::unique_ptr<cache::KvCache> kv_cache_;
  std::unique_ptr<model::Activations> activations_;
  kernels::cpu::ThreadPool pool_;
  std::unique_ptr<comm::Communicator> alone_;
  model::Context context_;
  std::unique_ptr<model::Stage> stage_;
};

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_LONE_STAGE_H_

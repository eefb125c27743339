// A step as a value: the controller writes a complete StepPlan, every rank runs it and needs no
// memory of earlier steps but weights and KV, the last stage answers with a StepResult. So a step
// can be sent, recorded and replayed. The structs are reused from step to step: Clear keeps
// capacity, and a step allocates nothing once warm.
#ifndef TRIREME_RUNTIME_ENGINE_STEP_H_
#define TRIREME_RUNTIME_ENGINE_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/sample/sampling_options.h"

namespace trireme::engine {

enum class PlanKind : uint8_t {
  kCompute,   // run the tokens
  kShutdown,  // leave the loop; nothing else is set
};

// The rows of one sequence in the plan: a prefill chunk or one decoded token.
struct PlanSequence {
  int32_t first_row = 0;       // in token_ids
  int32_t rows = 0;            // new tokens of this sequence
  int32_t first_position = 0;  // position of the first of them
  int32_t first_block = 0;     // in block_tables
  int32_t block_count = 0;     // ceil((first_position + rows) / kBlockTokens)
};

// One token to draw, from the logits of one row.
struct PlanSample {
  int32_t logit_index = 0;  // index into logit_rows
  uint32_t choice = 0;
  int64_t position =
      0;  // generated tokens before this one; with seed and choice the key of the draw
  sample::SamplingOptions sampling;
  bool want_logprob = false;
};

// What a plan may hold, fixed at start; workspaces are sized by it.
struct StepLimits {
  int32_t tokens = 512;     // token budget of one step
  int32_t sequences = 64;   // live at once
  int32_t logit_rows = 64;  // rows that need logits; score raises it to `tokens`
  int32_t context = 0;      // positions of one sequence
  int32_t blocks = 0;       // KV blocks of a rank
};

struct StepPlan {
  PlanKind kind = PlanKind::kCompute;
  uint64_t step = 0;               // counts from 1
  std::vector<int32_t> token_ids;  // [tokens]
  std::vector<int32_t> positions;  // [tokens]
  std::vector<int32_t> slots;      // [tokens]: block index * kBlockTokens + position in the block
  std::vector<PlanSequence> sequences;  // cover the rows in order, without gaps
  std::vector<int32_t> block_tables;    // the sequences' block indices, one after another
  std::vector<int32_t> logit_rows;      // rows whose logits are needed, rising
  std::vector<PlanSample> samples;
  bool want_logits = false;  // send the logits themselves back (score)

  void Clear();
  // Takes the memory of the largest plan within the limits.
  void Reserve(const StepLimits& limits);
};

// In StepResult::token_ids: no token could be drawn. The sequence is among the faults.
inline constexpr int32_t kNoToken = -1;

// A sequence whose values are no finite numbers any more. That request ends INTERNAL, the others go
// on.
struct StepFault {
  int32_t sequence = 0;  // index into the plan's sequences
  int32_t place = 0;     // where it began: a layer, or another place of model/row_faults.h
};

struct StepResult {
  uint64_t step = 0;
  absl::Status status;             // of the whole step; the others are empty when it is not OK
  std::vector<int32_t> token_ids;  // [samples]
  std::vector<float> logprobs;     // [samples]: natural log-probability of the drawn token at
                                   // temperature 1; 0 where not wanted
  std::vector<float> logits;       // [logit_rows, vocabulary] when want_logits
  std::vector<StepFault> faults;   // by rising sequence, each once

  void Clear();
};

// A plan from another process is untrusted: sizes, row ranges, ids, positions and slots against the
// limits.
absl::Status ValidateStepPlan(const StepPlan& plan, const StepLimits& limits, int64_t vocabulary);

// The wire form (proto/step.proto). Encode replaces *bytes; Decode replaces *plan or *result.
void EncodeStepPlan(const StepPlan& plan, std::string* bytes);
absl::Status DecodeStepPlan(absl::string_view bytes, StepPlan* plan);
void EncodeStepResult(const StepResult& result, std::string* bytes);
absl::Status DecodeStepResult(absl::string_view bytes, StepResult* result);

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_STEP_H_

#include "launcher/replica_options.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/cache/kv_format.h"

ABSL_FLAG(
    std::string, model, "",
    "GGUF file of the model, as in --model SmolLM2-135M-Instruct.Q4_1.gguf; tokenize, "
    "detokenize and render take a model's folder and a tokenizer's own file (docs/text.md) too");
ABSL_FLAG(int32_t, tensor, 1, "tensor ranks of each stage: 1, 2, 4 or 8, as in --tensor 2");
ABSL_FLAG(int32_t, stages, 1, "pipeline stages, as in --stages 2");
ABSL_FLAG(std::string, stage_layers, "",
          "layers of each stage when they are to be uneven, as in --stage-layers 10,20");
ABSL_FLAG(std::string, threads, "0",
          "threads of each rank, as in --threads 2, or of the ranks of each stage, as in --threads "
          "2,1; 0: this machine's cores over the ranks");
ABSL_FLAG(std::string, activations, "auto",
          "auto: int8 for quantised weights, bfloat16 for BF16 ones, else float32; or float32: "
          "decoded weights times float32 activations, the slow check");
ABSL_FLAG(std::string, kv_cache, "f16",
          "number format of keys and values: f16, f32, bf16, int8, fp8 or int4 (5.6 bits)");
ABSL_FLAG(std::string, kernels, "",
          "kernel table, as in --kernels avx2; empty: the best one of this machine");
ABSL_FLAG(
    std::string, bad_weights, "warn",
    "of a file with weights that are NaN or infinite: warn names them, and requests that meet "
    "them end with an error; refuse does not load it");
ABSL_FLAG(int32_t, context_tokens, 0,
          "positions of one sequence, as in --context-tokens 2048; 0: the model's");
ABSL_FLAG(int32_t, kv_tokens, 0,
          "positions that the KV cache holds in all, as in --kv-tokens 65536; 0: the context, or "
          "32768 if that is more");
ABSL_FLAG(int32_t, step_tokens, 512,
          "tokens of one step, prompt chunks and decoded ones together, as in --step-tokens 256");
ABSL_FLAG(int32_t, sequences, 64, "sequences that run at once, as in --sequences 16");

namespace trireme::launcher {
namespace {

constexpr int32_t kThreadsMax = 1024;
constexpr int32_t kStepTokensMax = 65536;
constexpr int32_t kSequencesMax = 65536;

absl::Status CheckRange(const char* flag, int64_t value, int64_t minimum, int64_t maximum) {
  if (value >= minimum && value <= maximum) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s is %d; it must be between %d and %d", flag, value, minimum, maximum));
}

absl::StatusOr<std::vector<int64_t>> StageLayers() {
  std::vector<int64_t> layers;
  const std::string text = absl::GetFlag(FLAGS_stage_layers);
  if (text.empty()) {
    return layers;
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t count = 0;
    if (!absl::SimpleAtoi(part, &count)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--stage-layers is \"%s\"; it must be layer counts such as 10,20", text));
    }
    layers.push_back(count);
  }
  return layers;
}

// [stages]
absl::StatusOr<std::vector<int>> StageThreads(const topology::Layout& layout) {
  const std::string text = absl::GetFlag(FLAGS_threads);
  std::vector<int> threads;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int count = 0;
    if (!absl::SimpleAtoi(part, &count)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--threads is \"%s\"; it must be a number such as 2, or one a stage such as 2,1", text));
    }
    RETURN_IF_ERROR(CheckRange("threads", count, 0, kThreadsMax));
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    threads.push_back(count == 0 ? std::max(1, cores / layout.ranks()) : count);
  }
  if (threads.size() == 1) {
    threads.resize(layout.stages, threads[0]);
  }
  if (static_cast<int>(threads.size()) != layout.stages) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--threads is \"%s\", which is for %d stages; there are %d", text,
                        threads.size(), layout.stages));
  }
  return threads;
}

absl::Status ReadFormats(engine::RankOptions* ranks) {
  const std::string activations = absl::GetFlag(FLAGS_activations);
  if (activations == "auto") {
    ranks->activations = model::ActivationMode::kAuto;
  } else if (activations == "float32") {
    ranks->activations = model::ActivationMode::kFloat32;
  } else {
    return absl::InvalidArgumentError(
        absl::StrFormat("--activations is \"%s\"; it must be auto or float32", activations));
  }
  const std::string kv_cache = absl::GetFlag(FLAGS_kv_cache);
  absl::StatusOr<kernels::KeyValueFormat> kv_format = cache::FindKvFormat(kv_cache);
  if (!kv_format.ok()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--kv-cache: %s", kv_format.status().message()));
  }
  ranks->kv_format = *kv_format;
  return absl::OkStatus();
}

absl::StatusOr<weights::BadWeights> ReadBadWeights() {
  const std::string text = absl::GetFlag(FLAGS_bad_weights);
  if (text == "warn") {
    return weights::BadWeights::kWarn;
  }
  if (text == "refuse") {
    return weights::BadWeights::kRefuse;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--bad-weights is \"%s\"; it must be warn or refuse", text));
}

absl::Status ReadLimits(engine::StepLimits* limits) {
  limits->context = absl::GetFlag(FLAGS_context_tokens);
  RETURN_IF_ERROR(CheckRange("context-tokens", limits->context, 0, INT32_MAX));
  limits->tokens = absl::GetFlag(FLAGS_step_tokens);
  RETURN_IF_ERROR(CheckRange("step-tokens", limits->tokens, 1, kStepTokensMax));
  limits->sequences = absl::GetFlag(FLAGS_sequences);
  RETURN_IF_ERROR(CheckRange("sequences", limits->sequences, 1, kSequencesMax));
  const int32_t kv_tokens = absl::GetFlag(FLAGS_kv_tokens);
  RETURN_IF_ERROR(CheckRange("kv-tokens", kv_tokens, 0, INT32_MAX - kernels::kBlockTokens));
  limits->blocks = (kv_tokens + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
  limits->logit_rows = std::min(limits->tokens, limits->sequences);
  return absl::OkStatus();
}

}  // namespace

std::vector<const char*> ReplicaFlags(std::vector<const char*> further) {
  for (const char* name :
       {"tensor", "stages", "stage_layers", "threads", "activations", "kv_cache", "kernels",
        "bad_weights", "context_tokens", "kv_tokens", "step_tokens", "sequences"}) {
    further.push_back(name);
  }
  return further;
}

absl::Status RefuseReplicaFlags(absl::string_view why) {
  for (const char* name : ReplicaFlags({"model"})) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
    if (flag->CurrentValue() != flag->DefaultValue()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--%s %s %s", absl::StrReplaceAll(name, {{"_", "-"}}), flag->CurrentValue(), why));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplicaFlagValues> ReadReplicaFlags() {
  ReplicaFlagValues values;
  values.model = absl::GetFlag(FLAGS_model);
  if (values.model.empty()) {
    return absl::InvalidArgumentError(
        "--model is missing: name a GGUF file, as in --model FILE.gguf");
  }
  topology::Layout& layout = values.ranks.layout;
  layout.tensor_ranks = absl::GetFlag(FLAGS_tensor);
  RETURN_IF_ERROR(CheckRange("tensor", layout.tensor_ranks, 1, 1024));
  layout.stages = absl::GetFlag(FLAGS_stages);
  RETURN_IF_ERROR(CheckRange("stages", layout.stages, 1, 1024));
  ASSIGN_OR_RETURN(layout.stage_layers, StageLayers());
  ASSIGN_OR_RETURN(values.stage_threads, StageThreads(layout));
  values.ranks.threads =
      *std::max_element(values.stage_threads.begin(), values.stage_threads.end());
  values.ranks.kernels = absl::GetFlag(FLAGS_kernels);
  RETURN_IF_ERROR(ReadFormats(&values.ranks));
  ASSIGN_OR_RETURN(values.ranks.bad_weights, ReadBadWeights());
  RETURN_IF_ERROR(ReadLimits(&values.ranks.limits));
  return values;
}

}  // namespace trireme::launcher

#include "topology/planner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "topology/capacity.h"
#include "topology/link_model.h"

namespace trireme::topology {
namespace {

constexpr double kMebibyte = int64_t{1} << 20;
constexpr double kGibibyte = int64_t{1} << 30;
constexpr double kBitsMin = 2;  // below, no weight format keeps a model useful

std::string Size(double bytes) {
  return bytes < kGibibyte ? absl::StrFormat("%.1f MiB", bytes / kMebibyte)
                           : absl::StrFormat("%.2f GiB", bytes / kGibibyte);
}

double DecodeSeconds(const StageSpeed& stage) {
  return stage.layer_units * stage.decode_layer_seconds + stage.output_seconds;
}

// One step of `sequences` tokens, one of each sequence: the first costs what it costs alone, each
// further one its arithmetic, and each reads its own keys and values.
double StepSeconds(const StageSpeed& stage, double sequences, double mean_context) {
  const double further = (sequences - 1) * stage.layer_units * stage.prefill_layer_seconds;
  const double keys_and_values =
      stage.stream_bytes_per_second > 0
          ? sequences * mean_context * stage.kv_bytes_per_token / stage.stream_bytes_per_second
          : 0;
  return DecodeSeconds(stage) + further + keys_and_values;
}

std::string DescribeLimit(const SpeedQuestion& question, double link_seconds,
                          double token_seconds) {
  double stage_seconds = 0;
  double read_seconds = 0;
  for (const StageSpeed& stage : question.stages) {
    stage_seconds += DecodeSeconds(stage);
    read_seconds +=
        stage.stream_bytes_per_second > 0 ? stage.decode_bytes / stage.stream_bytes_per_second : 0;
  }
  const std::pair<double, const char*> parts[] = {
      {read_seconds, "reading weights from memory"},
      {std::max(0.0, stage_seconds - read_seconds), "arithmetic and hand-over inside a stage"},
      {link_seconds, "the links between stages"},
      {question.step_seconds, "the controller's step"}};
  const auto& largest = *std::max_element(std::begin(parts), std::end(parts));
  return absl::StrFormat("%s (%.0f %% of a token's time)", largest.second,
                         100 * largest.first / token_seconds);
}

}  // namespace

int64_t BlocksThatFit(int64_t kv_bytes, int64_t block_bytes) { return kv_bytes / block_bytes; }

KvCapacity CapacityOf(int64_t blocks, int64_t block_tokens, int64_t sequence_tokens) {
  const int64_t sequence_blocks = (sequence_tokens + block_tokens - 1) / block_tokens;
  return {.tokens = blocks * block_tokens, .sequences = blocks / sequence_blocks};
}

std::string DescribeMisfit(const HostDemand& demand) {
  if (demand.total_bytes() <= demand.available_bytes) {
    return "";
  }
  const double available = static_cast<double>(demand.available_bytes);
  std::vector<std::string> remedies;
  const double weights_room =
      available - static_cast<double>(demand.kv_bytes + demand.workspace_bytes);
  const double parameters =
      static_cast<double>(demand.weight_bytes) * 8 / std::max(demand.bits_per_weight, 1.0);
  const double bits = BitsPerWeight(weights_room, parameters);
  if (bits >= kBitsMin) {
    remedies.push_back(absl::StrFormat("at most %.2f bits a weight (now %.2f)",
                                       std::floor(bits * 100) / 100, demand.bits_per_weight));
  }
  const int64_t tokens = TokensThatFit(
      {.memory_bytes = available,
       .weight_bytes = static_cast<double>(demand.weight_bytes + demand.workspace_bytes),
       .kv_bytes_per_token = static_cast<double>(demand.kv_bytes_per_token)});
  if (tokens > 0) {
    remedies.push_back(
        absl::StrFormat("KV for at most %d tokens (a shorter context, or memory.kv)", tokens));
  }
  const auto hosts = static_cast<int64_t>(
      std::ceil(static_cast<double>(demand.total_bytes()) / std::max(available, 1.0)));
  if (hosts <= 1024) {
    remedies.push_back(
        absl::StrFormat("more ranks on %d hosts like it", std::max<int64_t>(2, hosts)));
  }
  return absl::StrFormat(
      "host %s has %s for %s (weights %s, KV %s, workspace %s); what would fit: %s", demand.host,
      Size(available), Size(static_cast<double>(demand.total_bytes())),
      Size(static_cast<double>(demand.weight_bytes)), Size(static_cast<double>(demand.kv_bytes)),
      Size(static_cast<double>(demand.workspace_bytes)), absl::StrJoin(remedies, ", or "));
}

SpeedPrediction PredictSpeed(const SpeedQuestion& question) {
  const auto stages = static_cast<double>(question.stages.size());
  double token_seconds = question.step_seconds;
  double prefill_seconds = 0;  // of one token
  double slowest_seconds = 0;
  const double sequences = std::max(static_cast<double>(question.sequences), stages);
  for (const StageSpeed& stage : question.stages) {
    token_seconds += DecodeSeconds(stage);
    prefill_seconds += stage.layer_units * stage.prefill_layer_seconds;
    slowest_seconds = std::max(
        slowest_seconds,
        StepSeconds(stage, sequences / stages, static_cast<double>(question.sequence_tokens)));
  }
  double link_seconds = 0;
  if (question.stages.size() > 1) {
    link_seconds = (stages - 1) * SendSeconds(question.link, question.residual_bytes);
    prefill_seconds += (stages - 1) * question.residual_bytes / question.link.bytes_per_second;
  }
  token_seconds += link_seconds;
  return {.decode_tokens_per_second = 1 / token_seconds,
          .throughput_tokens_per_second =
              sequences / stages / (slowest_seconds + question.step_seconds),
          .prefill_tokens_per_second = 1 / prefill_seconds,
          .decode_limit = DescribeLimit(question, link_seconds, token_seconds)};
}

StageSpeed SpeedFromStated(const StatedSpeed& stated) {
  const double reduce = 2 * AllReduceSeconds(kSharedMemoryLink, stated.tensor_ranks,
                                             stated.residual_bytes);  // two in each layer
  const double compute = stated.layer_operations / stated.operations_per_second;
  StageSpeed speed;
  speed.layer_units = static_cast<double>(stated.layers);
  speed.decode_layer_seconds =
      std::max(stated.layer_bytes / stated.stream_bytes_per_second, compute) + reduce;
  speed.output_seconds = stated.output_bytes / stated.stream_bytes_per_second;
  speed.prefill_layer_seconds = compute + 2 * stated.residual_bytes /
                                              kSharedMemoryLink.bytes_per_second *
                                              (stated.tensor_ranks > 1 ? 1 : 0);
  speed.decode_bytes = speed.layer_units * stated.layer_bytes + stated.output_bytes;
  speed.stream_bytes_per_second = stated.stream_bytes_per_second;
  return speed;
}

}  // namespace trireme::topology

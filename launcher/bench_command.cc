#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kernels/cpu/machine_limits.h"
#include "kernels/formats/weight_format.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/generation.h"
#include "launcher/local_model.h"
#include "launcher/replica_options.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "runtime/cache/block_pool.h"
#include "runtime/weights/checkpoint.h"

ABSL_FLAG(int64_t, prompt_tokens, 512, "tokens of the prompt, as in --prompt-tokens 512");
ABSL_FLAG(int64_t, generate_tokens, 64, "tokens to generate, as in --generate-tokens 64");
ABSL_FLAG(int64_t, depth, 0,
          "tokens of context before the prompt, which the speeds do not count, as in --depth 4096");
ABSL_FLAG(int64_t, streams, 1,
          "requests that run at once, the speeds being those of all together, as in --streams 16");
ABSL_FLAG(int64_t, repeat, 5, "samples to take, as in --repeat 9");
ABSL_DECLARE_FLAG(bool, json);

namespace trireme::launcher {
namespace {

constexpr double kDisturbance =
    0.15;  // limits that differ by more before and after a sample: the machine was not ours

// What one sample runs.
struct Shape {
  int64_t depth = 0;
  int64_t prompt_tokens = 0;
  int64_t generate_tokens = 0;
  int64_t streams = 1;

  int64_t positions() const { return depth + prompt_tokens + generate_tokens; }  // of a stream
};

Shape ShapeOfFlags() {
  return {.depth = absl::GetFlag(FLAGS_depth),
          .prompt_tokens = absl::GetFlag(FLAGS_prompt_tokens),
          .generate_tokens = absl::GetFlag(FLAGS_generate_tokens),
          .streams = absl::GetFlag(FLAGS_streams)};
}

// One sample: the speeds, and the limits of the machine just before and after.
struct Sample {
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;
  kernels::cpu::MachineLimits limits;
  bool is_disturbed = false;
};

// Weight bytes that one decoded token reads, and operations that one prompt token costs, by the
// kind of activations, on all ranks together.
struct Work {
  double decode_bytes_per_token = 0;
  std::array<double, kernels::kActivationKindCount> prefill_operations_per_token = {};

  // The least time of a prompt's token.
  double PrefillSeconds(const kernels::cpu::MachineLimits& limits) const {
    double seconds = 0;
    for (int kind = 0; kind < kernels::kActivationKindCount; ++kind) {
      seconds += prefill_operations_per_token[static_cast<size_t>(kind)] /
                 limits.OperationsPerSecond(static_cast<kernels::ActivationKind>(kind));
    }
    return seconds;
  }
};

Work WorkOf(const engine::ReplicaInfo& info) {
  Work work;
  for (const engine::RankWork& rank : info.rank_work) {
    work.decode_bytes_per_token += static_cast<double>(rank.decode_bytes);
    for (size_t kind = 0; kind < rank.prefill_products.size(); ++kind) {
      work.prefill_operations_per_token[kind] +=
          2 * static_cast<double>(rank.prefill_products[kind]);
    }
  }
  return work;
}

int64_t InvoluntarySwitches() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// The times of requests that ran at once.
struct Times {
  absl::Duration first_first_token = absl::InfiniteDuration();  // of the earliest stream
  absl::Duration last_first_token;
  absl::Duration end;
  int64_t generated_tokens = 0;
};

// Streams of `prompt_tokens` tokens of prompt, ids spread over the vocabulary, which differ from
// run to run and from stream to stream.
Times RunStreams(engine::Replica& replica, const Shape& shape, int64_t prompt_tokens,
                 int64_t generate_tokens, int64_t run) {
  const int64_t vocabulary = replica.info().model.vocabulary;
  std::vector<schedule::Request> requests(static_cast<size_t>(shape.streams));
  for (size_t stream = 0; stream < requests.size(); ++stream) {
    schedule::Request& request = requests[stream];
    const int64_t first = run * 104729 + static_cast<int64_t>(stream) * 1299709 + 13;
    for (int64_t i = 0; i < prompt_tokens; ++i) {
      request.prompt.push_back(static_cast<int32_t>((i * 7919 + first) % vocabulary));
    }
    request.stopping.max_tokens = generate_tokens;
    request.stopping.ignore_eos = true;
    request.want_text = false;
  }
  Times times;
  for (const Generation& generation :
       Generate(replica.controller(), std::move(requests), nullptr)) {
    times.first_first_token = std::min(times.first_first_token, generation.first_token);
    times.last_first_token = std::max(times.last_first_token, generation.first_token);
    times.end = std::max(times.end, generation.total);
    times.generated_tokens += static_cast<int64_t>(generation.token_ids.size());
  }
  return times;
}

double PerSecond(int64_t count, absl::Duration time) {
  return time > absl::ZeroDuration() ? static_cast<double>(count) / absl::ToDoubleSeconds(time) : 0;
}

kernels::cpu::MachineLimits MeanOf(const kernels::cpu::MachineLimits& a,
                                   const kernels::cpu::MachineLimits& b) {
  kernels::cpu::MachineLimits mean;
  for (double kernels::cpu::MachineLimits::*limit :
       {&kernels::cpu::MachineLimits::stream_bytes_per_second,
        &kernels::cpu::MachineLimits::byte_operations_per_second,
        &kernels::cpu::MachineLimits::float_operations_per_second,
        &kernels::cpu::MachineLimits::bfloat16_operations_per_second,
        &kernels::cpu::MachineLimits::clock_hz}) {
    mean.*limit = (a.*limit + b.*limit) / 2;
  }
  return mean;
}

Sample TakeSample(engine::Replica& replica, int threads, const Shape& shape, int64_t run) {
  const kernels::cpu::MachineLimits before = kernels::cpu::MeasureMachineLimits(threads);
  const int64_t switches = InvoluntarySwitches();
  absl::Duration depth_time;
  absl::Duration total;
  if (shape.depth > 0) {
    const Times alone = RunStreams(replica, shape, shape.depth, 1, run);
    depth_time = alone.last_first_token;
    total += alone.end;
  }
  const Times times =
      RunStreams(replica, shape, shape.depth + shape.prompt_tokens, shape.generate_tokens, run);
  total += times.end;
  const int64_t switched = InvoluntarySwitches() - switches;
  const kernels::cpu::MachineLimits after = kernels::cpu::MeasureMachineLimits(threads);
  Sample sample;
  sample.prefill_tokens_per_second =
      PerSecond(shape.streams * shape.prompt_tokens, times.last_first_token - depth_time);
  sample.decode_tokens_per_second =
      PerSecond(times.generated_tokens - shape.streams, times.end - times.first_first_token);
  sample.limits = MeanOf(before, after);
  const double drift = before.stream_bytes_per_second / after.stream_bytes_per_second;
  // Losing a core more than ten times a second is somebody else's work on it.
  sample.is_disturbed = drift > 1 + kDisturbance || drift < 1 / (1 + kDisturbance) ||
                        static_cast<double>(switched) > 10 * absl::ToDoubleSeconds(total) + 5;
  return sample;
}

nlohmann::ordered_json Spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {{"median", median}, {"minimum", values.front()}, {"maximum", values.back()}};
}

// The streams of a step share its reading of the weights.
nlohmann::ordered_json Summary(const std::vector<Sample>& samples, const engine::ReplicaInfo& info,
                               const Shape& shape) {
  const Work work = WorkOf(info);
  std::map<std::string, std::vector<double>> columns;
  int64_t disturbed = 0;
  for (const Sample& sample : samples) {
    columns["prefill_tokens_per_second"].push_back(sample.prefill_tokens_per_second);
    columns["decode_tokens_per_second"].push_back(sample.decode_tokens_per_second);
    columns["stream_bytes_per_second"].push_back(sample.limits.stream_bytes_per_second);
    columns["decode_share_of_stream"].push_back(
        sample.decode_tokens_per_second / static_cast<double>(shape.streams) *
        work.decode_bytes_per_token / sample.limits.stream_bytes_per_second);
    columns["prefill_share_of_peak"].push_back(sample.prefill_tokens_per_second *
                                               work.PrefillSeconds(sample.limits));
    columns["int8_operations_per_second"].push_back(sample.limits.byte_operations_per_second);
    columns["bfloat16_operations_per_second"].push_back(
        sample.limits.bfloat16_operations_per_second);
    columns["float_operations_per_second"].push_back(sample.limits.float_operations_per_second);
    columns["clock_hz"].push_back(sample.limits.clock_hz);
    disturbed += sample.is_disturbed ? 1 : 0;
  }
  nlohmann::ordered_json json;
  for (const char* name :
       {"prefill_tokens_per_second", "decode_tokens_per_second", "stream_bytes_per_second",
        "decode_share_of_stream", "prefill_share_of_peak", "int8_operations_per_second",
        "bfloat16_operations_per_second", "float_operations_per_second", "clock_hz"}) {
    json[name] = Spread(columns[name]);
  }
  json["depth"] = shape.depth;
  json["streams"] = shape.streams;
  json["decode_bytes_per_token"] = work.decode_bytes_per_token;
  json["kernel_table"] = info.table;
  json["disturbed"] = disturbed;  // of the samples
  json["repeat"] = samples.size();
  return json;
}

void PrintTable(const nlohmann::ordered_json& summary) {
  absl::PrintF("%-31s %14s %14s %14s\n", "", "median", "minimum", "maximum");
  for (const auto& [name, value] : summary.items()) {
    if (value.is_object()) {
      absl::PrintF("%-31s %14.5g %14.5g %14.5g\n", name, value["median"].get<double>(),
                   value["minimum"].get<double>(), value["maximum"].get<double>());
    } else {
      absl::PrintF("%-31s %14s\n", name, value.dump());
    }
  }
}

absl::Status CheckShape(const weights::Checkpoint& checkpoint, const engine::RankOptions& options) {
  const Shape shape = ShapeOfFlags();
  ASSIGN_OR_RETURN(const engine::StepLimits limits,
                   engine::ResolveLimits(options.limits, checkpoint.model_spec()));
  if (shape.positions() > limits.context) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--depth %d, --prompt-tokens %d and --generate-tokens %d: the context has "
                        "%d positions; ask for fewer",
                        shape.depth, shape.prompt_tokens, shape.generate_tokens, limits.context));
  }
  const int64_t blocks = cache::BlocksFor(shape.positions()) * shape.streams;
  if (shape.streams > limits.sequences || blocks > limits.blocks) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--streams %d of %d positions each do not run at once: --sequences allows %d, and the KV "
        "cache holds %d positions and would need %d; ask for fewer, or raise --sequences or "
        "--kv-tokens",
        shape.streams, shape.positions(), limits.sequences,
        int64_t{limits.blocks} * cache::kBlockTokens, blocks * cache::kBlockTokens));
  }
  return absl::OkStatus();
}

ExitCode BenchWith(engine::Replica& replica, int threads) {
  const Shape shape = ShapeOfFlags();
  Shape warm_up = shape;
  warm_up.depth = 0;
  warm_up.generate_tokens = std::min<int64_t>(shape.generate_tokens, 4);
  (void)TakeSample(replica, threads, warm_up, /*run=*/-1);
  std::vector<Sample> samples;
  for (int64_t run = 0; run < absl::GetFlag(FLAGS_repeat); ++run) {
    samples.push_back(TakeSample(replica, threads, shape, run));
  }
  const nlohmann::ordered_json summary = Summary(samples, replica.info(), shape);
  if (absl::GetFlag(FLAGS_json)) {
    absl::PrintF("%s\n", summary.dump());
  } else {
    PrintTable(summary);
  }
  return ExitCode::kOk;
}

ExitCode RunBench(const std::vector<std::string>& /*words*/) {
  for (const auto& [name, value] :
       {std::pair<const char*, int64_t>{"prompt-tokens", absl::GetFlag(FLAGS_prompt_tokens)},
        {"generate-tokens", absl::GetFlag(FLAGS_generate_tokens)},
        {"streams", absl::GetFlag(FLAGS_streams)},
        {"repeat", absl::GetFlag(FLAGS_repeat)},
        {"depth", absl::GetFlag(FLAGS_depth)}}) {
    const int64_t least = absl::string_view(name) == "depth" ? 0 : 1;
    if (value < least || value > 1000000) {
      return Fail(ExitCode::kUsage,
                  absl::InvalidArgumentError(absl::StrFormat(
                      "--%s is %d; it must be between %d and 1000000", name, value, least)));
    }
  }
  int threads = 1;
  return WithLocalModel(
      [&threads](const weights::Checkpoint& checkpoint, engine::RankOptions* options) {
        threads = options->threads * options->layout.ranks();
        return CheckShape(checkpoint, *options);
      },
      [&threads](engine::Replica& replica, absl::Duration /*load_time*/) {
        return BenchWith(replica, threads);
      });
}

}  // namespace

Subcommand BenchSubcommand() {
  return {
      .name = "bench",
      .summary = "Speed of a model, as a share of this machine's limits measured in the same run",
      .synopsis =
          "--model FILE [--prompt-tokens N] [--generate-tokens N] [--depth N] [--streams N] "
          "[--repeat R] [flags]",
      .example =
          "trireme bench --model model.gguf --prompt-tokens 512 --generate-tokens 64 --threads 2 "
          "--repeat 5",
      .flags = ReplicaFlags({"model", "prompt_tokens", "generate_tokens", "depth", "streams",
                             "repeat", "json", "quiet"}),
      .words_max = 0,
      .run = RunBench};
}

}  // namespace trireme::launcher

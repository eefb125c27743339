#include "launcher/generation_flags.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/sample/sampling_options.h"
#include "runtime/schedule/request.h"

ABSL_FLAG(int64_t, max_tokens, 256, "tokens to generate at most, as in --max-tokens 64");
ABSL_FLAG(
    std::optional<double>, temperature, std::nullopt,
    "0 to 2; 0 is greedy, as in --temperature 0.7; not given: 0, or what a server's model has");
ABSL_FLAG(std::optional<int64_t>, top_k, std::nullopt,
          "draw from the K likeliest tokens only, as in --top-k 40; 0 or not given: off");
ABSL_FLAG(std::optional<double>, top_p, std::nullopt,
          "draw from the likeliest tokens that reach this probability, as in --top-p 0.9; not "
          "given: 1");
ABSL_FLAG(std::optional<double>, min_p, std::nullopt,
          "drop tokens less likely than this share of the likeliest, as in --min-p 0.05; not "
          "given: 0");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt,
          "seed of the draws: the same seed gives the same text, as in --seed 7; not given: 0, or "
          "the server's choice");
ABSL_FLAG(bool, ignore_eos, false, "go on to --max-tokens whatever the model says");
ABSL_FLAG(std::string, stop, "", "text that ends the generation, as in --stop \"###\"");

namespace trireme::launcher {
namespace {

absl::Status CheckRange(const char* flag, double value, double minimum, double maximum) {
  if (value >= minimum && value <= maximum) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s is %g; it must be between %g and %g", flag, value, minimum, maximum));
}

}  // namespace

std::vector<const char*> GenerationFlags() {
  return {"max_tokens", "temperature", "top_k", "top_p", "min_p", "seed", "ignore_eos", "stop"};
}

absl::StatusOr<schedule::Request> ReadGenerationFlags() {
  schedule::Request request;
  const int64_t max_tokens = absl::GetFlag(FLAGS_max_tokens);
  if (max_tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--max-tokens is %d; it must be at least 1", max_tokens));
  }
  const double temperature = absl::GetFlag(FLAGS_temperature).value_or(0);
  const int64_t top_k = absl::GetFlag(FLAGS_top_k).value_or(0);
  const double top_p = absl::GetFlag(FLAGS_top_p).value_or(1);
  const double min_p = absl::GetFlag(FLAGS_min_p).value_or(0);
  RETURN_IF_ERROR(CheckRange("temperature", temperature, 0, 2));
  RETURN_IF_ERROR(CheckRange("top-k", static_cast<double>(top_k), 0, INT32_MAX));
  RETURN_IF_ERROR(CheckRange("top-p", top_p, 1e-9, 1));
  RETURN_IF_ERROR(CheckRange("min-p", min_p, 0, 1));
  request.sampling = {.temperature = static_cast<float>(temperature),
                      .top_k = static_cast<int32_t>(top_k),
                      .top_p = static_cast<float>(top_p),
                      .min_p = static_cast<float>(min_p),
                      .seed = absl::GetFlag(FLAGS_seed).value_or(0)};
  RETURN_IF_ERROR(sample::ValidateSamplingOptions(request.sampling));
  request.stopping.max_tokens = max_tokens;
  request.stopping.ignore_eos = absl::GetFlag(FLAGS_ignore_eos);
  const std::string stop = absl::GetFlag(FLAGS_stop);
  if (!stop.empty()) {
    request.stopping.stop_strings.push_back(stop);
  }
  return request;
}

GivenSampling ReadGivenSampling() {
  GivenSampling given;
  const auto narrow = [](const std::optional<double>& value) {
    return value ? std::optional<float>(static_cast<float>(*value)) : std::nullopt;
  };
  given.temperature = narrow(absl::GetFlag(FLAGS_temperature));
  given.top_k = absl::GetFlag(FLAGS_top_k);
  if (given.top_k == 0) {
    given.top_k = std::nullopt;  // off, which the wire says by leaving it out
  }
  given.top_p = narrow(absl::GetFlag(FLAGS_top_p));
  given.min_p = narrow(absl::GetFlag(FLAGS_min_p));
  given.seed = absl::GetFlag(FLAGS_seed);
  return given;
}

}  // namespace trireme::launcher

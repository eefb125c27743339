#include "runtime/spec/read_rope.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/spec/rope_scaling.h"

namespace trireme::spec {
namespace {

// Divides frequencies by the factors that `name` holds.
absl::Status Divide(const Keys& keys, absl::string_view name, const std::vector<double>& factors,
                    std::vector<double>* frequencies) {
  if (factors.size() != frequencies->size()) {
    return keys.metadata().ErrorAt(
        name, absl::StrFormat("has size %d; rotated heads need %d values", factors.size(),
                              frequencies->size()));
  }
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!std::isfinite(factors[i]) || factors[i] <= 0) {
      return keys.metadata().ErrorAt(
          name, absl::StrFormat("holds %g at %d; factors must be above 0", factors[i], i));
    }
    (*frequencies)[i] /= factors[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> TensorFactors(const Keys& keys, absl::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<float> values, keys.metadata().TensorValues(name));
  return std::vector<double>(values.begin(), values.end());
}

absl::StatusOr<double> YarnAttentionFactor(const Keys& keys, const RopeQuestion& question,
                                           double factor) {
  if (!question.has_yarn_multiplier && keys.is_gguf()) {
    return 1.0;
  }
  if (keys.is_gguf()) {
    const char* key = keys.Has("rope.scaling.yarn_attn_factor") ? "rope.scaling.yarn_attn_factor"
                                                                : "rope.scaling.attn_factor";
    ASSIGN_OR_RETURN(const double given, keys.Positive(key, 1.0));
    return given * YarnMultiplier(factor, 1);
  }
  if (keys.Has("rope.scaling.attn_factor")) {
    return keys.Positive("rope.scaling.attn_factor", 1.0);
  }
  if (keys.Has("rope.scaling.mscale") && keys.Has("rope.scaling.mscale_all_dim")) {
    ASSIGN_OR_RETURN(const double mscale, keys.metadata().Float(keys.Name("rope.scaling.mscale")));
    ASSIGN_OR_RETURN(const double all,
                     keys.metadata().Float(keys.Name("rope.scaling.mscale_all_dim")));
    if (mscale != 0 && all != 0) {
      return YarnMultiplier(factor, mscale) / YarnMultiplier(factor, all);
    }
  }
  return YarnMultiplier(factor, 1);
}

absl::Status ScaleYarn(const Keys& keys, const RopeQuestion& question, double base,
                       RopeSpec* rope) {
  YarnScaling scaling;
  ASSIGN_OR_RETURN(scaling.factor, keys.Positive("rope.scaling.factor", 1.0));
  ASSIGN_OR_RETURN(const int64_t original, keys.ExtentOr("rope.scaling.original_context_length",
                                                         kPositionsMax, question.context));
  scaling.original_context = static_cast<double>(original);
  ASSIGN_OR_RETURN(scaling.beta_fast, keys.Positive("rope.scaling.yarn_beta_fast", 32.0));
  ASSIGN_OR_RETURN(scaling.beta_slow, keys.Positive("rope.scaling.yarn_beta_slow", 1.0));
  ASSIGN_OR_RETURN(scaling.truncate, keys.Flag("rope.scaling.truncate", question.truncates_yarn));
  rope->frequencies = YarnFrequencies(rope->rotated_dim, base, scaling);
  ASSIGN_OR_RETURN(rope->multiplier, YarnAttentionFactor(keys, question, scaling.factor));
  return absl::OkStatus();
}

absl::Status ScaleLlama3(const Keys& keys, RopeSpec* rope) {
  Llama3Scaling scaling;
  ASSIGN_OR_RETURN(scaling.factor, keys.Positive("rope.scaling.factor", std::nullopt));
  ASSIGN_OR_RETURN(scaling.low_frequency_factor,
                   keys.Positive("rope.scaling.low_freq_factor", std::nullopt));
  ASSIGN_OR_RETURN(scaling.high_frequency_factor,
                   keys.Positive("rope.scaling.high_freq_factor", std::nullopt));
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor) {
    return keys.Error("rope.scaling.high_freq_factor",
                      absl::StrFormat("is %g; it must be above low_freq_factor, %g",
                                      scaling.high_frequency_factor, scaling.low_frequency_factor));
  }
  ASSIGN_OR_RETURN(const int64_t original,
                   keys.Extent("rope.scaling.original_context_length", kPositionsMax));
  scaling.original_context = static_cast<double>(original);
  rope->frequencies = Llama3Frequencies(std::move(rope->frequencies), scaling);
  return absl::OkStatus();
}

// LongRoPE (Ding et al. 2024, arXiv 2402.13753): one list of divisors for contexts up to the
// original one, another beyond it; the multiplier belongs to both.
absl::Status ScaleLong(const Keys& keys, const RopeQuestion& question, RopeSpec* rope) {
  ASSIGN_OR_RETURN(rope->short_context, keys.ExtentOr("rope.scaling.original_context_length",
                                                      kPositionsMax, question.context));
  std::vector<double> long_factors;
  std::vector<double> short_factors;
  std::string long_name = "rope_factors_long.weight";
  std::string short_name = "rope_factors_short.weight";
  if (keys.is_gguf()) {
    ASSIGN_OR_RETURN(long_factors, TensorFactors(keys, long_name));
    ASSIGN_OR_RETURN(short_factors, TensorFactors(keys, short_name));
  } else {
    long_name = keys.Name("rope.scaling.long_factor");
    short_name = keys.Name("rope.scaling.short_factor");
    ASSIGN_OR_RETURN(long_factors, keys.metadata().Floats(long_name));
    ASSIGN_OR_RETURN(short_factors, keys.metadata().Floats(short_name));
  }
  rope->short_frequencies = rope->frequencies;
  RETURN_IF_ERROR(Divide(keys, long_name, long_factors, &rope->frequencies));
  RETURN_IF_ERROR(Divide(keys, short_name, short_factors, &rope->short_frequencies));
  const double stretch =
      static_cast<double>(question.context) / static_cast<double>(rope->short_context);
  const double computed =
      keys.is_gguf() || stretch <= 1 || rope->short_context < 2
          ? 1
          : std::sqrt(1 + std::log(stretch) / std::log(static_cast<double>(rope->short_context)));
  ASSIGN_OR_RETURN(rope->multiplier, keys.Positive("rope.scaling.attn_factor", computed));
  return absl::OkStatus();
}

absl::StatusOr<RopeSpec> Unscaled(const Keys& keys, const RopeQuestion& question, double base) {
  RopeSpec rope;
  rope.pairing = question.pairing;
  if (keys.Has("rope.partial_factor")) {
    ASSIGN_OR_RETURN(const double part, keys.Positive("rope.partial_factor", 1.0));
    rope.rotated_dim = static_cast<int64_t>(part * static_cast<double>(question.head_dim) + 1e-6);
    if (part > 1 || rope.rotated_dim < 2 || rope.rotated_dim % 2 != 0) {
      return keys.Error("rope.partial_factor",
                        absl::StrFormat("is %g; of heads %d wide it must leave an even part", part,
                                        question.head_dim));
    }
  } else {
    ASSIGN_OR_RETURN(rope.rotated_dim,
                     keys.ExtentOr("rope.dimension_count", kWidthMax, question.head_dim));
  }
  if (rope.rotated_dim > question.head_dim || rope.rotated_dim % 2 != 0) {
    return keys.Error("rope.dimension_count",
                      absl::StrFormat("is %d; it must be even and at most the head width %d",
                                      rope.rotated_dim, question.head_dim));
  }
  rope.frequencies = PlainFrequencies(rope.rotated_dim, base);
  return rope;
}

}  // namespace

absl::StatusOr<RopeSpec> ReadRope(const Keys& keys, const RopeQuestion& question) {
  ASSIGN_OR_RETURN(const double base, keys.Positive("rope.freq_base", question.base));
  ASSIGN_OR_RETURN(RopeSpec rope, Unscaled(keys, question, base));
  ASSIGN_OR_RETURN(const std::string type,
                   keys.Text("rope.scaling.type", keys.is_gguf() ? "linear" : "default"));
  // "dynamic" changes frequencies beyond the trained context, which no sequence leaves.
  const bool is_plain = type == "none" || type == "default" || type == "dynamic" || type == "mrope";
  if (type == "linear") {
    const char* factor_key = keys.is_gguf() && !keys.Has("rope.scaling.factor")
                                 ? "rope.scale_linear"
                                 : "rope.scaling.factor";
    ASSIGN_OR_RETURN(const double factor, keys.Positive(factor_key, 1.0));
    rope.frequencies = LinearFrequencies(std::move(rope.frequencies), factor);
  } else if (type == "yarn") {
    RETURN_IF_ERROR(ScaleYarn(keys, question, base, &rope));
  } else if (type == "longrope" || type == "su") {
    RETURN_IF_ERROR(ScaleLong(keys, question, &rope));
  } else if (type == "llama3" && !keys.is_gguf()) {
    RETURN_IF_ERROR(ScaleLlama3(keys, &rope));
  } else if (!is_plain) {
    return keys.Error(
        "rope.scaling.type",
        absl::StrFormat("is \"%s\"; this build knows none, linear, llama3, yarn and longrope",
                        type));
  }
  // llama3 scaling, baked into a tensor by the converter.
  constexpr char kFactors[] = "rope_freqs.weight";
  if (keys.is_gguf() && keys.metadata().TensorExtents(kFactors).has_value()) {
    ASSIGN_OR_RETURN(const std::vector<double> factors, TensorFactors(keys, kFactors));
    RETURN_IF_ERROR(Divide(keys, kFactors, factors, &rope.frequencies));
  }
  return rope;
}

absl::StatusOr<RopeSpec> ReadLocalRope(const Keys& keys, const RopeQuestion& question) {
  ASSIGN_OR_RETURN(const double base, keys.Positive("rope.freq_base_swa", question.base));
  return Unscaled(keys, question, base);
}

}  // namespace trireme::spec

#include "runtime/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/philox.h"
#include "runtime/sample/exponential.h"

namespace trireme::sample {
namespace {

// top_p seldom needs more than a few tokens: the list is sorted head by head, each head this many
// times as long as the one before.
constexpr size_t kFirstHead = 64;
constexpr size_t kHeadGrowth = 8;
// Weights are summed in runs of so many, and the draw skips whole runs.
constexpr size_t kRun = 256;
constexpr size_t kRunLanes = 4;
// The fourth Philox counter word separates uses of one key; drawing a token is use 0.
constexpr uint32_t kDrawUse = 0;

// The id of the largest logit, the lowest id on ties.
absl::StatusOr<int32_t> Largest(absl::Span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float maximum = -kInfinity;
  int64_t best = -1;
  const auto count = static_cast<int64_t>(logits.size());
  for (int64_t index = 0; index < count; ++index) {
    const float logit = logits[static_cast<size_t>(index)];
    if (!(logit <= maximum)) {  // NaN comes in here too
      if (!(logit < kInfinity)) {
        return absl::InternalError(absl::StrFormat(
            "logit of token %d is %f: the model's output is not a number; the weights or a kernel "
            "are faulty",
            index, logit));
      }
      maximum = logit;
      best = index;
    }
  }
  if (best < 0) {
    return absl::InternalError(
        absl::StrFormat("all %d logits are -infinity: there is no token to draw", count));
  }
  return static_cast<int32_t>(best);
}

// A temperature below 1e-30 acts as 1e-30 does: any difference of logits is beyond kExponentMin.
float InverseTemperature(const SamplingOptions& options) {
  return 1 / std::max(options.temperature, 1e-30f);
}

}  // namespace

double DrawUniform(uint64_t seed, const DrawKey& key) {
  const auto position = static_cast<uint64_t>(key.position);
  const PhiloxCounter counter = {static_cast<uint32_t>(position),
                                 static_cast<uint32_t>(position >> 32), key.choice, kDrawUse};
  return PhiloxUniform(
      Philox4x32(counter, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}));
}

Sampler::Sampler(int64_t vocabulary) {
  CHECK_GE(vocabulary, 0);
  candidates_.reserve(static_cast<size_t>(vocabulary));
  weights_.resize(static_cast<size_t>(vocabulary));
  run_sums_.resize((weights_.size() + kRun - 1) / kRun);
}

bool Sampler::Precedes(const Candidate& left, const Candidate& right) {
  return left.logit > right.logit || (left.logit == right.logit && left.token_id < right.token_id);
}

absl::StatusOr<Sampled> Sampler::Sample(absl::Span<const float> logits,
                                        const SamplingOptions& options, const DrawKey& key,
                                        bool want_logprob) {
  CHECK_LE(logits.size(), weights_.size());
  const absl::StatusOr<int32_t> largest = Largest(logits);
  if (!largest.ok()) {
    return largest.status();
  }
  const float maximum = logits[static_cast<size_t>(*largest)];
  Sampled sampled{.token_id = *largest};
  if (options.temperature > 0 && options.top_k != 1) {
    const double uniform = DrawUniform(options.seed, key);
    if (options.top_k > 0 && static_cast<size_t>(options.top_k) < logits.size()) {
      KeepTopK(logits, options.top_k);
      sampled.token_id = DrawFromCandidates(maximum, options, /*total=*/0, uniform);
    } else {
      sampled.token_id = DrawFromAll(logits, maximum, options, uniform);
    }
  }
  if (want_logprob) {
    Weights(logits, maximum, /*inverse_temperature=*/1, weights_.data());
    const double sum = SumWeights(logits.size());
    const float chosen = logits[static_cast<size_t>(sampled.token_id)];
    sampled.logprob = static_cast<float>(static_cast<double>(chosen) -
                                         static_cast<double>(maximum) - std::log(sum));
  }
  return sampled;
}

// Without top_p tokens stay in id order: sorting the vocabulary would cost more than the draw.
int32_t Sampler::DrawFromAll(absl::Span<const float> logits, float maximum,
                             const SamplingOptions& options, double uniform) {
  Weights(logits, maximum, InverseTemperature(options), weights_.data());
  if (options.top_p == 1) {
    return static_cast<int32_t>(Draw(logits.size(), options.min_p, uniform));
  }
  const double total = SumWeights(logits.size());
  KeepNucleusCandidates(logits, options, total);
  return DrawFromCandidates(maximum, options, total, uniform);
}

// The tokens that top_p and min_p may keep: all tokens of weight below
// (1 - top_p) * total / vocabulary together weigh less than 1 - top_p of the total, so the heavier
// ones alone reach top_p. Half of that bound leaves room for rounding.
void Sampler::KeepNucleusCandidates(absl::Span<const float> logits, const SamplingOptions& options,
                                    double total) {
  const double least =
      std::max(static_cast<double>(options.min_p), 0.5 * (1 - static_cast<double>(options.top_p)) *
                                                       total / static_cast<double>(logits.size()));
  candidates_.clear();
  for (size_t index = 0; index < logits.size(); ++index) {
    if (weights_[index] > 0 && static_cast<double>(weights_[index]) >= least) {
      candidates_.push_back({logits[index], static_cast<int32_t>(index)});
    }
  }
}

// A heap of the best top_k so far, its worst on top: most logits lose against that one at once.
void Sampler::KeepTopK(absl::Span<const float> logits, int32_t top_k) {
  candidates_.clear();
  const auto kept = static_cast<size_t>(top_k);
  for (size_t index = 0; index < logits.size(); ++index) {
    const Candidate candidate{logits[index], static_cast<int32_t>(index)};
    if (candidates_.size() < kept) {
      candidates_.push_back(candidate);
      std::push_heap(candidates_.begin(), candidates_.end(), Precedes);
    } else if (Precedes(candidate, candidates_.front())) {
      std::pop_heap(candidates_.begin(), candidates_.end(), Precedes);
      candidates_.back() = candidate;
      std::push_heap(candidates_.begin(), candidates_.end(), Precedes);
    }
  }
}

// Brings the best of candidates_[begin, ...) to [begin, end), sorted.
void Sampler::SortHead(size_t begin, size_t end) {
  const auto first = candidates_.begin();
  if (end < candidates_.size()) {
    std::nth_element(first + static_cast<std::ptrdiff_t>(begin),
                     first + static_cast<std::ptrdiff_t>(end), candidates_.end(), Precedes);
  }
  std::sort(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end),
            Precedes);
}

// Draws in the order of the list. `total` is the weight that top_p is a share of; 0: of the
// candidates themselves.
int32_t Sampler::DrawFromCandidates(float maximum, const SamplingOptions& options, double total,
                                    double uniform) {
  const float inverse_temperature = InverseTemperature(options);
  if (total == 0 && options.top_p < 1) {
    SortHead(0, candidates_.size());  // at most top_k; fixes the order of the sum
    for (const Candidate& candidate : candidates_) {
      total += static_cast<double>(Weight(candidate.logit, maximum, inverse_temperature));
    }
  }
  const double wanted = static_cast<double>(options.top_p) * total;
  double sum = 0;
  size_t sorted = 0;
  size_t head = options.top_p < 1 ? kFirstHead : candidates_.size();
  size_t count = 0;
  while (count < candidates_.size() && (options.top_p == 1 || count == 0 || sum < wanted)) {
    if (count == sorted) {
      sorted = std::min(candidates_.size(), count + head);
      head *= kHeadGrowth;
      SortHead(count, sorted);
    }
    weights_[count] = Weight(candidates_[count].logit, maximum, inverse_temperature);
    sum += static_cast<double>(weights_[count]);
    ++count;
  }
  return candidates_[Draw(count, options.min_p, uniform)].token_id;
}

// The sum of weights_[0, count), with the sum of each run in run_sums_. Four lanes a run, folded as
// (0 + 1) + (2 + 3): one chain of additions would take longer than the exponentials.
double Sampler::SumWeights(size_t count) {
  double total = 0;
  for (size_t run = 0; run * kRun < count; ++run) {
    const size_t end = std::min(count, (run + 1) * kRun);
    double lanes[kRunLanes] = {};
    size_t index = run * kRun;
    for (; index + kRunLanes <= end; index += kRunLanes) {
      for (size_t lane = 0; lane < kRunLanes; ++lane) {
        lanes[lane] += static_cast<double>(weights_[index + lane]);
      }
    }
    for (; index < end; ++index) {
      lanes[index % kRunLanes] += static_cast<double>(weights_[index]);
    }
    run_sums_[run] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    total += run_sums_[run];
  }
  return total;
}

// An index of weights_[0, count), by weight among those of at least min_p; the likeliest token has
// weight 1.
size_t Sampler::Draw(size_t count, float min_p, double uniform) {
  if (min_p > 0) {
    for (size_t index = 0; index < count; ++index) {
      weights_[index] = weights_[index] >= min_p ? weights_[index] : 0;
    }
  }
  const double wanted = uniform * SumWeights(count);
  double sum = 0;
  size_t run = 0;
  while ((run + 1) * kRun < count && sum + run_sums_[run] <= wanted) {
    sum += run_sums_[run];
    ++run;
  }
  // Where rounding leaves the sum short of `wanted`, the last token with any weight is taken.
  size_t chosen = count;
  for (size_t index = run * kRun; index < count && (chosen == count || sum <= wanted); ++index) {
    if (weights_[index] > 0) {
      chosen = index;
      sum += static_cast<double>(weights_[index]);
    }
  }
  while (chosen == count) {
    --run;  // nothing weighs anything from here on; the likeliest token stands before
    for (size_t index = run * kRun; index < (run + 1) * kRun; ++index) {
      chosen = weights_[index] > 0 ? index : chosen;
    }
  }
  return chosen;
}

}  // namespace trireme::sample

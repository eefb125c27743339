// Draws one token from one row of logits.
//
// The order of the steps is the one of the common Python engines: temperature, then top_k, then
// top_p (of what top_k left, renormalised: the fewest likeliest tokens whose sum reaches top_p),
// then min_p (at least min_p times the likeliest). Tokens rank by logit, the lower id first among
// equals, so each filter keeps a head of one and the same list.
//
// The draw is a pure function of logits, options and key: weights come from one fixed exponential
// (exponential.h) and add up as doubles in one fixed order, and the random number comes from
// Philox. A token less likely than e^-40 times the likeliest is never drawn (exponential.h): its
// share is below the rounding of the sum.
#ifndef TRIREME_RUNTIME_SAMPLE_SAMPLER_H_
#define TRIREME_RUNTIME_SAMPLE_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/sample/sampling_options.h"

namespace trireme::sample {

// With the seed of the options, what a draw depends on: never on when or where it happens.
struct DrawKey {
  uint32_t choice = 0;   // index among the choices of one request
  int64_t position = 0;  // generated tokens before this one
};

struct Sampled {
  int32_t token_id = 0;
  float logprob = 0;  // natural logarithm of the softmax of the raw logits (temperature 1)
};

// The uniform number in [0, 1) that draws a token.
double DrawUniform(uint64_t seed, const DrawKey& key);

// Thread rule: one Sampler a thread; it holds scratch memory.
class Sampler {
 public:
  // Scratch for `vocabulary` logits is taken here; drawing allocates nothing. 0: never draws.
  explicit Sampler(int64_t vocabulary);

  // `logits` [vocabulary] and valid options. Errors: Internal when a logit is NaN or +infinity (the
  // first one is named) or all are -infinity. logprob is 0 unless it is wanted.
  absl::StatusOr<Sampled> Sample(absl::Span<const float> logits, const SamplingOptions& options,
                                 const DrawKey& key, bool want_logprob);

 private:
  struct Candidate {
    float logit;
    int32_t token_id;
  };
  static bool Precedes(const Candidate& left, const Candidate& right);

  int32_t DrawFromAll(absl::Span<const float> logits, float maximum, const SamplingOptions& options,
                      double uniform);
  int32_t DrawFromCandidates(float maximum, const SamplingOptions& options, double total,
                             double uniform);
  void KeepTopK(absl::Span<const float> logits, int32_t top_k);
  void KeepNucleusCandidates(absl::Span<const float> logits, const SamplingOptions& options,
                             double total);
  void SortHead(size_t begin, size_t end);
  double SumWeights(size_t count);
  size_t Draw(size_t count, float min_p, double uniform);

  std::vector<Candidate> candidates_;
  std::vector<float> weights_;    // [vocabulary]: of all tokens by id, or of the candidates
  std::vector<double> run_sums_;  // of each kRun weights; see SumWeights
};

}  // namespace trireme::sample

#endif  // TRIREME_RUNTIME_SAMPLE_SAMPLER_H_

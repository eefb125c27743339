// A mixture of experts on tensor ranks: every rank holds its columns of every expert, so all ranks
// route alike and work alike. Tokens are sorted by expert; each expert's output is added up over
// the ranks first, and a token's outputs then in the order of its router, so no layout changes a
// bit.
#ifndef TRIREME_RUNTIME_MODEL_EXPERTS_H_
#define TRIREME_RUNTIME_MODEL_EXPERTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/model/context.h"
#include "runtime/model/feed_forward.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/shard.h"
#include "topology/partition.h"

namespace trireme::model {

class Experts {
 public:
  // The arguments outlive it; the spec has experts.
  Experts(const spec::ModelSpec& model, const spec::FeedForwardSpec& feed_forward,
          const topology::RankPart& part, const weights::LayerWeights& weights);

  // From x [tokens, model_dim] (quantised too where Input says so) to the whole sum in y, on every
  // rank. Errors: those of the communicator.
  absl::Status Run(const Context& context, const float* x, int64_t tokens, float* y) const;

  // Where the quantised x is wanted, or null.
  std::byte* Input(const Context& context) const;

 private:
  void Choose(const Context& context, const float* x, int64_t tokens) const;
  void SortByExpert(const Context& context, int64_t tokens) const;
  void RunExpert(const Context& context, const float* x, int64_t expert) const;
  float SharedWeight(const float* x) const;

  const spec::FeedForwardSpec& feed_forward_;
  const spec::ExpertsSpec& experts_;
  const weights::LayerWeights& weights_;
  const int64_t model_dim_;
  const int64_t terms_;           // outputs that a token adds up: the used ones, and the shared one
  const int64_t expert_columns_;  // of this rank; may be 0
  const int64_t shared_columns_;
  std::vector<HiddenWeights> hidden_;  // [experts]
  HiddenWeights shared_;
};

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_EXPERTS_H_

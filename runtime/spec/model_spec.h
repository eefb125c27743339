// A model as data: everything that the forward pass, the partitioner and the loader need to know of
// an architecture. A new family is a function that fills these structs (families.h); nothing else
// in the program names a family.
#ifndef TRIREME_RUNTIME_SPEC_MODEL_SPEC_H_
#define TRIREME_RUNTIME_SPEC_MODEL_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "runtime/spec/tensor_source.h"
#include "topology/partition.h"

namespace trireme::spec {

enum class RopePairing : uint8_t {
  kInterleaved,  // (x[2p], x[2p + 1]): Meta's originals, GGUF files of the llama family
  kHalfSplit,    // (x[p], x[p + rotated / 2]): checkpoints in the Hugging Face layout
};

struct RopeSpec {
  RopePairing pairing = RopePairing::kInterleaved;
  int64_t rotated_dim = 0;  // of each head; even, <= head_dim
  std::vector<double>
      frequencies;        // [rotated_dim / 2] radians per position, scaling already applied
  double multiplier = 1;  // of cosines and sines (yarn, longrope)
  // LongRoPE: what takes their place where the context is at most short_context positions.
  std::vector<double> short_frequencies;
  int64_t short_context = 0;
};

enum class QueryKeyNorm : uint8_t {
  kNone,
  kPerHead,   // each head by itself, gains [head_dim] for all of them
  kAllHeads,  // one norm over all heads together, gains [heads * head_dim]
};

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434) in its absorbed form: the cache holds
// one head of latent_dim + rotated_dim values, and each query head is brought into the latent.
struct LatentSpec {
  int64_t query_rank = 0;  // 0: queries come straight from the model's width
  int64_t latent_dim = 0;
  int64_t unrotated_dim = 0;  // of each query head, before the rotated ones
  int64_t rotated_dim = 0;
  int64_t value_dim = 0;  // of each head's output
};

struct AttentionSpec {
  int64_t query_heads = 0;
  int64_t key_value_heads = 0;
  int64_t head_dim = 0;    // as cached
  double scale = 0;        // of the scores
  double soft_cap = 0;     // of the scores; 0: none
  int64_t window = 0;      // keys that a query sees, itself included; 0: all
  int32_t rope_index = 0;  // into ModelSpec::ropes; -1: no positions
  bool has_bias = false;   // of queries, keys and values
  bool has_output_bias = false;
  bool has_sinks = false;
  bool has_attended_norm = false;  // one norm over what all heads give to the output matrix
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  std::optional<LatentSpec> latent;

  // Values of one head that go into the output matrix.
  int64_t output_dim() const { return latent.has_value() ? latent->value_dim : head_dim; }
};

enum class Routing : uint8_t {
  kSoftmax,        // over all experts, then the choice
  kSoftmaxChosen,  // the choice, then over the chosen ones
  kSigmoid,        // of each expert by itself
};

// How groups of experts are ranked where only some may serve.
enum class GroupScore : uint8_t { kMaximum, kSumOfTwo };

struct ExpertsSpec {
  int64_t count = 0;
  int64_t used = 0;        // of a token
  int64_t hidden_dim = 0;  // of one expert
  int64_t shared_dim = 0;  // hidden width of the expert that every token uses; 0: none
  Routing routing = Routing::kSoftmax;
  bool renormalizes = false;  // weights of the chosen ones sum to 1 (before `scale`)
  double scale = 1;           // of the routed experts' weights
  int64_t groups = 1;
  int64_t used_groups = 1;
  GroupScore group_score = GroupScore::kMaximum;
  bool has_router_bias = false;
  bool has_correction_bias = false;
  bool has_bias = false;         // of gate, up and down
  bool has_shared_gate = false;  // a sigmoid weighs the shared expert
};

struct FeedForwardSpec {
  int64_t hidden_dim = 0;  // 0 where experts take its place
  kernels::Activation activation = kernels::Activation::kSilu;
  float swish_limit = 7;  // of kClampedSwish
  float swish_alpha = 1.702F;
  bool is_gated = true;
  bool has_gate_bias = false;
  bool has_up_bias = false;
  bool has_down_bias = false;
  bool has_hidden_norm = false;  // one norm over what goes into `down`
  std::optional<ExpertsSpec> experts;
};

struct LayerSpec {
  AttentionSpec attention;
  FeedForwardSpec feed_forward;
  bool has_input_norms = true;    // before attention and before the feed-forward
  bool has_output_norms = false;  // of what each of them adds
  bool is_parallel = false;       // both read the norm before attention
};

enum class NormKind : uint8_t { kRms, kLayer };

struct ModelSpec {
  std::string family;  // "llama"
  std::string name;    // as the checkpoint calls itself, may be empty
  int64_t model_dim = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;  // trained positions
  NormKind norm = NormKind::kRms;
  bool has_norm_bias = false;
  double norm_epsilon = 0;
  double norm_gain_offset = 0;  // added to stored gains (Gemma: 1)
  double embedding_scale = 1;
  double residual_scale = 1;  // of what each sublayer adds
  double logit_scale = 1;
  double logit_soft_cap = 0;  // 0: none
  bool tied_output = false;   // the output matrix is the embedding
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  TensorSources sources;  // by role

  TensorSource& source(Role role) { return sources[static_cast<size_t>(role)]; }
  const TensorSource& source(Role role) const { return sources[static_cast<size_t>(role)]; }

  // Extents of the cut. All layers have the same heads; hidden_dim is the widest one.
  topology::ModelExtents Extents() const;

  // The model as it runs with at most `positions`: picks LongRoPE's frequencies.
  ModelSpec ForContext(int64_t positions) const;
};

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_MODEL_SPEC_H_

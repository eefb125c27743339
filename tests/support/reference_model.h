// The oracle: a plain forward pass in doubles, written from the specification and sharing nothing
// with the runtime but the checkpoint reader, the model's spec and the scalar format decoders. One
// sequence, no cache, no batching, no cutting; latent attention in its plain form.
#ifndef TRIREME_TESTS_SUPPORT_REFERENCE_MODEL_H_
#define TRIREME_TESTS_SUPPORT_REFERENCE_MODEL_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "runtime/spec/model_spec.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::testing {

class ReferenceModel {
 public:
  // The checkpoint outlives the model; `context` picks LongRoPE's factors, 0: the trained one.
  explicit ReferenceModel(const weights::Checkpoint& checkpoint, int64_t context = 0);

  // Logits of every position, [tokens][vocabulary].
  std::vector<std::vector<double>> Logits(absl::Span<const int32_t> token_ids);

 private:
  using Row = std::vector<double>;

  // All values of a role's matrix, decoded, [rows][columns]; a vector is a matrix of one row.
  const std::vector<Row>& Matrix(spec::Role role, int64_t layer, int64_t index = 0);
  Row Times(spec::Role role, int64_t layer, const Row& x, int64_t index = 0);
  void AddVector(spec::Role role, int64_t layer, Row* x, int64_t index = 0);
  Row Norm(const Row& x, spec::Role gain, spec::Role bias, int64_t layer);
  static Row RootMeanSquare(const Row& x, const Row& gain, double epsilon, double offset);
  void Rotate(const spec::AttentionSpec& attention, double* part, int64_t position) const;
  void NormHeads(int64_t layer, spec::Role gain, Row* heads);

  // What the sublayers add to each row of the stream; x is normed where the layer says so.
  std::vector<Row> Attend(int64_t layer, const std::vector<Row>& x);
  Row FeedForward(int64_t layer, const Row& x);
  Row Experts(int64_t layer, const Row& x);
  Row Hidden(int64_t layer, const Row& x, spec::Role gate, spec::Role up, spec::Role down,
             int64_t index);
  Row Softmax(int64_t layer, int64_t head, size_t position, const Row& scores);
  // Keys and queries of latent attention, expanded to whole heads.
  void ExpandLatent(int64_t layer, const Row& x, int64_t position, Row* query, Row* key,
                    Row* value);
  void LeaveSublayer(int64_t layer, spec::Role gain, Row* added);

  const weights::Checkpoint& checkpoint_;
  const spec::ModelSpec model_;
  std::map<std::tuple<spec::Role, int64_t, int64_t>, std::vector<Row>> matrices_;
};

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_REFERENCE_MODEL_H_

#include "tests/support/reference_model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/formats/decode.h"
#include "runtime/base/check.h"
#include "runtime/spec/tensor_roles.h"

namespace trireme::testing {
namespace {

using spec::Role;

double Sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

double Activate(kernels::Activation activation, double z) {
  switch (activation) {
    case kernels::Activation::kSilu:
      return z * Sigmoid(z);
    case kernels::Activation::kGeluTanh:
      return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
    case kernels::Activation::kRelu2:
      return z > 0 ? z * z : 0;
    case kernels::Activation::kClampedSwish:
      break;
  }
  CHECK(false);
}

// gpt-oss: (up + 1) * gate * sigmoid(alpha gate), both clamped.
double ClampedSwish(const spec::FeedForwardSpec& spec, double gate, double up) {
  const double limit = spec.swish_limit;
  const double g = std::min(gate, limit);
  const double u = std::clamp(up, -limit, limit);
  return g * Sigmoid(static_cast<double>(spec.swish_alpha) * g) * (u + 1);
}

// The largest `count` entries, the lower index first among equals.
std::vector<size_t> Largest(const std::vector<double>& scores, int64_t count) {
  std::vector<size_t> order(scores.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(static_cast<size_t>(count));
  return order;
}

void SoftmaxInPlace(std::vector<double>* values) {
  const double maximum = *std::max_element(values->begin(), values->end());
  double sum = 0;
  for (double& value : *values) {
    value = std::exp(value - maximum);
    sum += value;
  }
  for (double& value : *values) {
    value /= sum;
  }
}

}  // namespace

ReferenceModel::ReferenceModel(const weights::Checkpoint& checkpoint, int64_t context)
    : checkpoint_(checkpoint),
      model_(checkpoint.model_spec().ForContext(context == 0 ? checkpoint.model_spec().context
                                                             : context)) {}

const std::vector<ReferenceModel::Row>& ReferenceModel::Matrix(Role role, int64_t layer,
                                                               int64_t index) {
  const auto key = std::make_tuple(role, layer, index);
  if (const auto found = matrices_.find(key); found != matrices_.end()) {
    return found->second;
  }
  const spec::TensorRole& row = spec::RoleOf(role);
  const spec::LayerSpec& layer_spec = model_.layers[static_cast<size_t>(layer)];
  const bool tied = role == Role::kOutput && model_.tied_output;
  const spec::TensorSource& source = model_.source(tied ? Role::kEmbedding : role);
  const auto stored = checkpoint_.Tensor(spec::TensorName(source, layer, index),
                                         spec::StoredExtents(row, model_, layer_spec));
  if (!stored.ok()) {
    internal::CheckFailed(__FILE__, __LINE__, stored.status().ToString());
  }
  std::vector<std::vector<float>> values;
  for (int64_t r = 0; r < stored->rows; ++r) {
    values.emplace_back(stored->columns);
    kernels::DecodeRow(stored->format, stored->data + r * stored->row_bytes, 0, stored->columns,
                       values.back().data());
  }
  const bool is_vector = row.columns == spec::Extent::kOne;
  const int64_t rows = spec::ExtentOf(row.rows, model_, layer_spec);
  const int64_t columns = spec::ExtentOf(row.columns, model_, layer_spec);
  const bool is_numbered = source.name.find('#') != std::string::npos;
  std::vector<Row> matrix(static_cast<size_t>(is_vector ? 1 : rows));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t place = source.first_row + r * source.row_step;
    if (is_vector) {
      matrix[0].push_back(static_cast<double>(values[is_numbered ? 0 : index][place]));
      continue;
    }
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t step = source.index_rows != 0 ? source.index_rows
                           : source.is_transposed ? columns
                                                  : rows;
      const int64_t first = is_numbered ? 0 : index * step;
      matrix[r].push_back(static_cast<double>(source.is_transposed ? values[first + c][place]
                                                                   : values[first + place][c]));
    }
  }
  return matrices_.emplace(key, std::move(matrix)).first->second;
}

ReferenceModel::Row ReferenceModel::Times(Role role, int64_t layer, const Row& x, int64_t index) {
  const std::vector<Row>& matrix = Matrix(role, layer, index);
  Row y(matrix.size());
  for (size_t row = 0; row < matrix.size(); ++row) {
    CHECK_EQ(matrix[row].size(), x.size());
    for (size_t column = 0; column < x.size(); ++column) {
      y[row] += matrix[row][column] * x[column];
    }
  }
  return y;
}

void ReferenceModel::AddVector(Role role, int64_t layer, Row* x, int64_t index) {
  const spec::TensorRole& row = spec::RoleOf(role);
  if (!row.is_used(model_, model_.layers[static_cast<size_t>(layer)])) {
    return;
  }
  const Row& bias = Matrix(role, layer, index)[0];
  for (size_t i = 0; i < x->size(); ++i) {
    (*x)[i] += bias[i];
  }
}

ReferenceModel::Row ReferenceModel::RootMeanSquare(const Row& x, const Row& gain, double epsilon,
                                                   double offset) {
  double sum = 0;
  for (const double value : x) {
    sum += value * value;
  }
  const double root = std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / root * (gain[i] + offset);
  }
  return y;
}

ReferenceModel::Row ReferenceModel::Norm(const Row& x, Role gain, Role bias, int64_t layer) {
  Row centred = x;
  if (model_.norm == spec::NormKind::kLayer) {
    double mean = 0;
    for (const double value : x) {
      mean += value / static_cast<double>(x.size());
    }
    for (double& value : centred) {
      value -= mean;
    }
  }
  Row y =
      RootMeanSquare(centred, Matrix(gain, layer)[0], model_.norm_epsilon, model_.norm_gain_offset);
  if (model_.has_norm_bias) {
    AddVector(bias, layer, &y);
  }
  return y;
}

void ReferenceModel::Rotate(const spec::AttentionSpec& attention, double* part,
                            int64_t position) const {
  if (attention.rope_index < 0) {
    return;
  }
  const spec::RopeSpec& rope = model_.ropes[static_cast<size_t>(attention.rope_index)];
  const size_t half = rope.frequencies.size();
  for (size_t p = 0; p < half; ++p) {
    const bool interleaved = rope.pairing == spec::RopePairing::kInterleaved;
    double& u = part[interleaved ? 2 * p : p];
    double& v = part[interleaved ? 2 * p + 1 : p + half];
    const double angle = static_cast<double>(position) * rope.frequencies[p];
    const double cosine = std::cos(angle) * rope.multiplier;
    const double sine = std::sin(angle) * rope.multiplier;
    const double first = u * cosine - v * sine;
    v = u * sine + v * cosine;
    u = first;
  }
}

void ReferenceModel::NormHeads(int64_t layer, Role gain, Row* heads) {
  const spec::AttentionSpec& attention = model_.layers[static_cast<size_t>(layer)].attention;
  if (attention.query_key_norm == spec::QueryKeyNorm::kNone) {
    return;
  }
  const Row& gains = Matrix(gain, layer)[0];
  for (size_t begin = 0; begin < heads->size(); begin += gains.size()) {
    const auto first = heads->begin() + static_cast<int64_t>(begin);
    const Row normed = RootMeanSquare(Row(first, first + static_cast<int64_t>(gains.size())), gains,
                                      model_.norm_epsilon, model_.norm_gain_offset);
    std::copy(normed.begin(), normed.end(), first);
  }
}

void ReferenceModel::ExpandLatent(int64_t layer, const Row& x, int64_t position, Row* query,
                                  Row* key, Row* value) {
  const spec::AttentionSpec& attention = model_.layers[static_cast<size_t>(layer)].attention;
  const spec::LatentSpec& latent = *attention.latent;
  const int64_t width = latent.unrotated_dim + latent.rotated_dim;
  if (latent.query_rank == 0) {
    *query = Times(Role::kQuery, layer, x);
  } else {
    const Row low = RootMeanSquare(Times(Role::kQueryDown, layer, x),
                                   Matrix(Role::kQueryDownNorm, layer)[0], model_.norm_epsilon, 0);
    *query = Times(Role::kQueryUp, layer, low);
  }
  const Row both = Times(Role::kLatent, layer, x);
  const Row compressed =
      RootMeanSquare(Row(both.begin(), both.begin() + latent.latent_dim),
                     Matrix(Role::kLatentNorm, layer)[0], model_.norm_epsilon, 0);
  Row shared(both.begin() + latent.latent_dim, both.end());
  Rotate(attention, shared.data(), position);
  key->clear();
  value->clear();
  for (int64_t head = 0; head < attention.query_heads; ++head) {
    Rotate(attention, query->data() + head * width + latent.unrotated_dim, position);
    const std::vector<Row>& up = Matrix(Role::kKeyUp, layer, head);  // [latent][unrotated]
    for (int64_t i = 0; i < latent.unrotated_dim; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < latent.latent_dim; ++k) {
        sum += up[k][i] * compressed[k];
      }
      key->push_back(sum);
    }
    key->insert(key->end(), shared.begin(), shared.end());
    const Row own = Times(Role::kValueUp, layer, compressed, head);
    value->insert(value->end(), own.begin(), own.end());
  }
}

// Weights of the keys up to `position`, from scores of all of them.
ReferenceModel::Row ReferenceModel::Softmax(int64_t layer, int64_t head, size_t position,
                                            const Row& scores) {
  const spec::AttentionSpec& attention = model_.layers[static_cast<size_t>(layer)].attention;
  const auto window = static_cast<size_t>(attention.window);
  const size_t first = window > 0 && position + 1 > window ? position + 1 - window : 0;
  Row visible(scores.begin() + static_cast<int64_t>(first),
              scores.begin() + static_cast<int64_t>(position) + 1);
  for (double& score : visible) {
    score *= attention.scale;
    if (attention.soft_cap > 0) {
      score = attention.soft_cap * std::tanh(score / attention.soft_cap);
    }
  }
  if (attention.has_sinks) {
    visible.push_back(Matrix(Role::kSinks, layer)[0][static_cast<size_t>(head)]);
  }
  SoftmaxInPlace(&visible);
  Row weights(position + 1);
  std::copy_n(visible.begin(), position + 1 - first, weights.begin() + static_cast<int64_t>(first));
  return weights;
}

std::vector<ReferenceModel::Row> ReferenceModel::Attend(int64_t layer, const std::vector<Row>& x) {
  const spec::AttentionSpec& attention = model_.layers[static_cast<size_t>(layer)].attention;
  const bool is_latent = attention.latent.has_value();
  const int64_t key_heads = is_latent ? attention.query_heads : attention.key_value_heads;
  const int64_t d = is_latent ? attention.latent->unrotated_dim + attention.latent->rotated_dim
                              : attention.head_dim;
  const int64_t value_dim = attention.output_dim();
  std::vector<Row> queries(x.size());
  std::vector<Row> keys(x.size());
  std::vector<Row> values(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto position = static_cast<int64_t>(i);
    if (is_latent) {
      ExpandLatent(layer, x[i], position, &queries[i], &keys[i], &values[i]);
      continue;
    }
    queries[i] = Times(Role::kQuery, layer, x[i]);
    keys[i] = Times(Role::kKey, layer, x[i]);
    values[i] = Times(Role::kValue, layer, x[i]);
    AddVector(Role::kQueryBias, layer, &queries[i]);
    AddVector(Role::kKeyBias, layer, &keys[i]);
    AddVector(Role::kValueBias, layer, &values[i]);
    NormHeads(layer, Role::kQueryNorm, &queries[i]);
    NormHeads(layer, Role::kKeyNorm, &keys[i]);
    for (int64_t head = 0; head < attention.query_heads; ++head) {
      Rotate(attention, queries[i].data() + head * d, position);
    }
    for (int64_t head = 0; head < key_heads; ++head) {
      Rotate(attention, keys[i].data() + head * d, position);
    }
  }
  const int64_t shared_by = attention.query_heads / key_heads;
  std::vector<Row> added;
  for (size_t i = 0; i < x.size(); ++i) {
    Row attended(static_cast<size_t>(attention.query_heads * value_dim));
    for (int64_t head = 0; head < attention.query_heads; ++head) {
      const int64_t shared = head / shared_by;
      Row scores(i + 1);
      for (size_t j = 0; j <= i; ++j) {
        for (int64_t k = 0; k < d; ++k) {
          scores[j] += queries[i][head * d + k] * keys[j][shared * d + k];
        }
      }
      const Row weights = Softmax(layer, head, i, scores);
      for (size_t j = 0; j <= i; ++j) {
        for (int64_t k = 0; k < value_dim; ++k) {
          attended[head * value_dim + k] += weights[j] * values[j][shared * value_dim + k];
        }
      }
    }
    added.push_back(Times(Role::kAttentionOutput, layer, attended));
    AddVector(Role::kAttentionOutputBias, layer, &added.back());
  }
  return added;
}

ReferenceModel::Row ReferenceModel::Hidden(int64_t layer, const Row& x, Role gate_role,
                                           Role up_role, Role down_role, int64_t index) {
  const spec::FeedForwardSpec& spec = model_.layers[static_cast<size_t>(layer)].feed_forward;
  const bool is_expert = gate_role == Role::kExpertGate;
  Row up = Times(up_role, layer, x, index);
  AddVector(is_expert ? Role::kExpertUpBias : Role::kUpBias, layer, &up, index);
  if (!spec.is_gated) {
    for (double& value : up) {
      value = Activate(spec.activation, value);
    }
    return Times(down_role, layer, up, index);
  }
  Row gate = Times(gate_role, layer, x, index);
  AddVector(is_expert ? Role::kExpertGateBias : Role::kGateBias, layer, &gate, index);
  for (size_t k = 0; k < gate.size(); ++k) {
    gate[k] = spec.activation == kernels::Activation::kClampedSwish
                  ? ClampedSwish(spec, gate[k], up[k])
                  : Activate(spec.activation, gate[k]) * up[k];
  }
  return Times(down_role, layer, gate, index);
}

ReferenceModel::Row ReferenceModel::Experts(int64_t layer, const Row& x) {
  const spec::ExpertsSpec& experts =
      *model_.layers[static_cast<size_t>(layer)].feed_forward.experts;
  Row logits = Times(Role::kRouter, layer, x);
  AddVector(Role::kRouterBias, layer, &logits);
  Row scores = logits;
  if (experts.routing == spec::Routing::kSoftmax) {
    SoftmaxInPlace(&scores);
  } else if (experts.routing == spec::Routing::kSigmoid) {
    std::transform(scores.begin(), scores.end(), scores.begin(), Sigmoid);
  }
  Row choice = scores;
  AddVector(Role::kCorrectionBias, layer, &choice);
  if (experts.groups > 1) {
    const int64_t size = experts.count / experts.groups;
    Row group_scores;
    for (int64_t group = 0; group < experts.groups; ++group) {
      Row members(choice.begin() + group * size, choice.begin() + (group + 1) * size);
      std::sort(members.rbegin(), members.rend());
      group_scores.push_back(
          experts.group_score == spec::GroupScore::kMaximum ? members[0] : members[0] + members[1]);
    }
    const std::vector<size_t> kept = Largest(group_scores, experts.used_groups);
    for (size_t i = 0; i < choice.size(); ++i) {
      if (std::find(kept.begin(), kept.end(), i / static_cast<size_t>(size)) == kept.end()) {
        choice[i] = -INFINITY;
      }
    }
  }
  const std::vector<size_t> chosen = Largest(choice, experts.used);
  Row weights;
  double sum = 0;
  for (const size_t expert : chosen) {
    weights.push_back(scores[expert]);
    sum += scores[expert];
  }
  if (experts.routing == spec::Routing::kSoftmaxChosen) {
    SoftmaxInPlace(&weights);
  } else if (experts.renormalizes) {
    for (double& weight : weights) {
      weight /= sum;
    }
  }
  Row total(x.size());
  const auto add = [&](const Row& row, double weight) {
    for (size_t i = 0; i < total.size(); ++i) {
      total[i] += weight * row[i];
    }
  };
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto expert = static_cast<int64_t>(chosen[i]);
    Row row = Hidden(layer, x, Role::kExpertGate, Role::kExpertUp, Role::kExpertDown, expert);
    AddVector(Role::kExpertDownBias, layer, &row, expert);
    add(row, weights[i] * experts.scale);
  }
  if (experts.shared_dim > 0) {
    double weight = 1;
    if (experts.has_shared_gate) {
      const Row& gate = Matrix(Role::kSharedRouter, layer)[0];
      double logit = 0;
      for (size_t i = 0; i < gate.size(); ++i) {
        logit += gate[i] * x[i];
      }
      weight = Sigmoid(logit);
    }
    add(Hidden(layer, x, Role::kSharedGate, Role::kSharedUp, Role::kSharedDown, 0), weight);
  }
  return total;
}

ReferenceModel::Row ReferenceModel::FeedForward(int64_t layer, const Row& x) {
  if (model_.layers[static_cast<size_t>(layer)].feed_forward.experts.has_value()) {
    return Experts(layer, x);
  }
  Row added = Hidden(layer, x, Role::kGate, Role::kUp, Role::kDown, 0);
  AddVector(Role::kDownBias, layer, &added);
  return added;
}

void ReferenceModel::LeaveSublayer(int64_t layer, Role gain, Row* added) {
  if (model_.layers[static_cast<size_t>(layer)].has_output_norms) {
    *added = Norm(*added, gain, Role::kOutputNormBias, layer);
  }
  for (double& value : *added) {
    value *= model_.residual_scale;
  }
}

std::vector<std::vector<double>> ReferenceModel::Logits(absl::Span<const int32_t> token_ids) {
  std::vector<Row> stream;
  for (const int32_t id : token_ids) {
    stream.push_back(Matrix(Role::kEmbedding, 0)[static_cast<size_t>(id)]);
    for (double& value : stream.back()) {
      value *= model_.embedding_scale;
    }
  }
  for (int64_t layer = 0; layer < static_cast<int64_t>(model_.layers.size()); ++layer) {
    const spec::LayerSpec& spec = model_.layers[static_cast<size_t>(layer)];
    std::vector<Row> x = stream;
    for (size_t i = 0; spec.has_input_norms && i < x.size(); ++i) {
      x[i] = Norm(x[i], Role::kAttentionNorm, Role::kAttentionNormBias, layer);
    }
    std::vector<Row> added = Attend(layer, x);
    for (size_t i = 0; i < stream.size(); ++i) {
      LeaveSublayer(layer, Role::kPostAttentionNorm, &added[i]);
      for (size_t k = 0; k < stream[i].size(); ++k) {
        stream[i][k] += added[i][k];
      }
      Row input = spec.is_parallel ? x[i] : stream[i];
      if (spec.has_input_norms && !spec.is_parallel) {
        input = Norm(input, Role::kFeedForwardNorm, Role::kFeedForwardNormBias, layer);
      }
      Row more = FeedForward(layer, input);
      LeaveSublayer(layer, Role::kPostFeedForwardNorm, &more);
      for (size_t k = 0; k < stream[i].size(); ++k) {
        stream[i][k] += more[k];
      }
    }
  }
  std::vector<std::vector<double>> logits;
  for (const Row& row : stream) {
    logits.push_back(
        Times(Role::kOutput, 0, Norm(row, Role::kOutputNorm, Role::kOutputNormBias, 0)));
    for (double& logit : logits.back()) {
      logit *= model_.logit_scale;
      if (model_.logit_soft_cap > 0) {
        logit = model_.logit_soft_cap * std::tanh(logit / model_.logit_soft_cap);
      }
    }
  }
  return logits;
}

}  // namespace trireme::testing

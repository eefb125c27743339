#include "runtime/model/experts.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "kernels/reference/math.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/context.h"
#include "runtime/model/feed_forward.h"
#include "runtime/model/linear.h"
#include "runtime/model/norm.h"
#include "runtime/model/router.h"
#include "runtime/spec/model_spec.h"
#include "topology/partition_model.h"

namespace trireme::model {

using spec::Role;

namespace {

int64_t ColumnsOf(int64_t hidden_dim, const topology::RankPart& part) {
  return topology::PartOfHidden(hidden_dim, part.tensor_rank, part.tensor_ranks).columns.size();
}

}  // namespace

Experts::Experts(const spec::ModelSpec& model, const spec::FeedForwardSpec& feed_forward,
                 const topology::RankPart& part, const weights::LayerWeights& weights)
    : feed_forward_(feed_forward),
      experts_(*feed_forward.experts),
      weights_(weights),
      model_dim_(model.model_dim),
      terms_(experts_.used + (experts_.shared_dim > 0 ? 1 : 0)),
      expert_columns_(ColumnsOf(experts_.hidden_dim, part)),
      shared_columns_(ColumnsOf(experts_.shared_dim, part)) {
  for (int64_t expert = 0; expert < experts_.count; ++expert) {
    hidden_.push_back({.gate = &weights.matrix(Role::kExpertGate, expert),
                       .up = &weights.matrix(Role::kExpertUp, expert),
                       .down = &weights.matrix(Role::kExpertDown, expert),
                       .gate_bias = weights.vector(Role::kExpertGateBias, expert),
                       .up_bias = weights.vector(Role::kExpertUpBias, expert)});
  }
  if (experts_.shared_dim > 0) {
    shared_ = {.gate = &weights.matrix(Role::kSharedGate),
               .up = &weights.matrix(Role::kSharedUp),
               .down = &weights.matrix(Role::kSharedDown)};
  }
}

std::byte* Experts::Input(const Context& context) const {
  const weights::PackedMatrix& router = weights_.matrix(Role::kRouter);
  return experts_.shared_dim > 0 ? QuantizedInput(context, {&router, shared_.gate, shared_.up})
                                 : QuantizedInput(context, {&router});
}

float Experts::SharedWeight(const float* x) const {
  const float* const gate = weights_.vector(Role::kSharedRouter);
  if (gate == nullptr) {
    return 1;
  }
  double sum = 0;
  for (int64_t i = 0; i < model_dim_; ++i) {
    sum += static_cast<double>(gate[i]) * static_cast<double>(x[i]);
  }
  return 1.0F / (1.0F + kernels::Exp(-static_cast<float>(sum)));
}

void Experts::Choose(const Context& context, const float* x, int64_t tokens) const {
  const Activations& a = *context.activations;
  const int64_t count = experts_.count;
  Multiply(context, x, tokens, model_dim_, {{&weights_.matrix(Role::kRouter), a.router}});
  AddBias(context, a.router, weights_.vector(Role::kRouterBias), tokens, count);
  const float* const bias = weights_.vector(Role::kCorrectionBias);
  const absl::Span<const float> correction(bias, bias == nullptr ? 0 : static_cast<size_t>(count));
  const absl::Span<float> scratch(a.route_scratch, static_cast<size_t>(count + experts_.groups));
  for (int64_t token = 0; token < tokens; ++token) {
    const auto used = static_cast<size_t>(experts_.used);
    Route(experts_, {a.router + token * count, static_cast<size_t>(count)}, correction, scratch,
          {a.chosen + token * experts_.used, used}, {a.expert_weights + token * terms_, used});
    if (experts_.shared_dim > 0) {
      a.expert_weights[token * terms_ + experts_.used] = SharedWeight(x + token * model_dim_);
    }
  }
}

// Counting sort: an expert's rows lie in order of tokens. expert_begins [experts + 1] says where,
// sorted_tokens whose they are, row_of_term [tokens, terms] where each token finds its outputs.
void Experts::SortByExpert(const Context& context, int64_t tokens) const {
  const Activations& a = *context.activations;
  std::fill_n(a.expert_begins, experts_.count + 1, 0);
  for (int64_t i = 0; i < tokens * experts_.used; ++i) {
    ++a.expert_begins[a.chosen[i] + 1];
  }
  for (int64_t expert = 0; expert < experts_.count; ++expert) {
    a.expert_begins[expert + 1] += a.expert_begins[expert];
  }
  // While rows are handed out, an expert's begin moves to its end, which is the next one's begin.
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t i = 0; i < experts_.used; ++i) {
      const int32_t row = a.expert_begins[a.chosen[token * experts_.used + i]]++;
      a.sorted_tokens[row] = static_cast<int32_t>(token);
      a.row_of_term[token * terms_ + i] = row;
    }
    if (experts_.shared_dim > 0) {
      a.row_of_term[token * terms_ + experts_.used] =
          static_cast<int32_t>(tokens * experts_.used + token);
    }
  }
  for (int64_t expert = experts_.count; expert > 0; --expert) {
    a.expert_begins[expert] = a.expert_begins[expert - 1];
  }
  a.expert_begins[0] = 0;
}

void Experts::RunExpert(const Context& context, const float* x, int64_t expert) const {
  const Activations& a = *context.activations;
  const int64_t begin = a.expert_begins[expert];
  const int64_t rows = a.expert_begins[expert + 1] - begin;
  if (rows == 0) {
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(x + a.sorted_tokens[begin + row] * model_dim_, model_dim_,
                a.gathered_rows + row * model_dim_);
  }
  const HiddenWeights& hidden = hidden_[static_cast<size_t>(expert)];
  QuantizeFor(context, {hidden.gate, hidden.up}, a.gathered_rows, rows, model_dim_);
  RunHidden(context, feed_forward_, hidden, model_dim_, expert_columns_, a.gathered_rows, rows,
            a.expert_rows + begin * model_dim_);
}

absl::Status Experts::Run(const Context& context, const float* x, int64_t tokens, float* y) const {
  const Activations& a = *context.activations;
  Choose(context, x, tokens);
  if (experts_.shared_dim > 0) {  // first: it reads the quantised x
    RunHidden(context, feed_forward_, shared_, model_dim_, shared_columns_, x, tokens,
              a.expert_rows + tokens * experts_.used * model_dim_);
  }
  SortByExpert(context, tokens);
  for (int64_t expert = 0; expert < experts_.count; ++expert) {
    RunExpert(context, x, expert);
  }
  RETURN_IF_ERROR(context.tensor_group->AllReduceSum(
      {a.expert_rows, static_cast<size_t>(tokens * terms_ * model_dim_)}));
  for (int64_t expert = 0; experts_.has_bias && expert < experts_.count; ++expert) {
    const int64_t begin = a.expert_begins[expert];
    AddBias(context, a.expert_rows + begin * model_dim_,
            weights_.vector(Role::kExpertDownBias, expert), a.expert_begins[expert + 1] - begin,
            model_dim_);
  }
  context.table->combine_rows(context.execution, {.x = a.expert_rows,
                                                  .rows = a.row_of_term,
                                                  .weights = a.expert_weights,
                                                  .terms = terms_,
                                                  .tokens = tokens,
                                                  .columns = model_dim_,
                                                  .y = y});
  return absl::OkStatus();
}

}  // namespace trireme::model

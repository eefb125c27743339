#include "runtime/model/router.h"

#include <algorithm>
#include <limits>

#include "absl/types/span.h"
#include "kernels/reference/math.h"
#include "runtime/spec/model_spec.h"

namespace trireme::model {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();
constexpr float kLeastScore = std::numeric_limits<float>::lowest();

void Softmax(absl::Span<float> values) {
  const float maximum = *std::max_element(values.begin(), values.end());
  float sum = 0;
  for (float& value : values) {
    value = kernels::Exp(value - maximum);
    sum += value;
  }
  for (float& value : values) {
    value /= sum;
  }
}

// The largest `count` of `scores`, which are excluded one by one.
void TakeLargest(absl::Span<float> scores, absl::Span<int32_t> chosen) {
  for (int32_t& index : chosen) {
    index = static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    scores[static_cast<size_t>(index)] = kExcluded;
  }
}

float ScoreOf(spec::GroupScore kind, absl::Span<const float> group) {
  float first = kExcluded;
  float second = kExcluded;
  for (const float score : group) {
    second = std::max(second, std::min(first, score));
    first = std::max(first, score);
  }
  return kind == spec::GroupScore::kMaximum || group.size() < 2 ? first : first + second;
}

// Excludes the experts of all but the best groups.
void KeepGroups(const spec::ExpertsSpec& experts, absl::Span<float> scores,
                absl::Span<float> group_scores) {
  const auto size = static_cast<size_t>(experts.count / experts.groups);
  for (int64_t group = 0; group < experts.groups; ++group) {
    group_scores[static_cast<size_t>(group)] =
        ScoreOf(experts.group_score, scores.subspan(static_cast<size_t>(group) * size, size));
  }
  for (int64_t kept = 0; kept < experts.used_groups; ++kept) {
    *std::max_element(group_scores.begin(), group_scores.end()) = kExcluded;
  }
  // What is left in group_scores is not kept; a kept one is excluded from the search above.
  for (int64_t group = 0; group < experts.groups; ++group) {
    if (group_scores[static_cast<size_t>(group)] != kExcluded) {
      const absl::Span<float> dropped = scores.subspan(static_cast<size_t>(group) * size, size);
      std::fill(dropped.begin(), dropped.end(), kExcluded);
    }
  }
}

}  // namespace

void Route(const spec::ExpertsSpec& experts, absl::Span<float> logits,
           absl::Span<const float> correction, absl::Span<float> scratch,
           absl::Span<int32_t> chosen, absl::Span<float> weights) {
  switch (experts.routing) {
    case spec::Routing::kSoftmax:
      Softmax(logits);
      break;
    case spec::Routing::kSigmoid:
      for (float& logit : logits) {
        logit = 1.0F / (1.0F + kernels::Exp(-logit));
      }
      break;
    case spec::Routing::kSoftmaxChosen:
      break;
  }
  const absl::Span<float> scores = scratch.subspan(0, logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const float score = correction.empty() ? logits[i] : logits[i] + correction[i];
    // Nothing that could be taken for excluded: a row of NaNs has distinct experts too.
    scores[i] = score >= kLeastScore ? score : kLeastScore;
  }
  if (experts.groups > 1) {
    KeepGroups(experts, scores, scratch.subspan(logits.size()));
  }
  TakeLargest(scores, chosen);
  float sum = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    weights[i] = logits[static_cast<size_t>(chosen[i])];
    sum += weights[i];
  }
  if (experts.routing == spec::Routing::kSoftmaxChosen) {
    Softmax(weights);
  } else if (experts.renormalizes) {
    for (float& weight : weights) {
      weight /= sum + 1e-20F;
    }
  }
  for (float& weight : weights) {
    weight *= static_cast<float>(experts.scale);
  }
}

}  // namespace trireme::model

#include "topology/stage_balance.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"

namespace trireme::topology {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// Sums of runs in constant time.
template <typename T>
std::vector<T> PrefixSums(const std::vector<T>& values) {
  std::vector<T> sums(values.size() + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    sums[i + 1] = sums[i] + values[i];
  }
  return sums;
}

// Seconds of a stage that has layers [begin, end), or infinity when they do not fit.
class RunCost {
 public:
  explicit RunCost(const StageCost& stage)
      : stage_(stage),
        seconds_(PrefixSums(stage.layer_seconds)),
        bytes_(PrefixSums(stage.layer_bytes)) {}

  double Of(int64_t begin, int64_t end) const {
    const int64_t bytes = stage_.fixed_bytes + bytes_[end] - bytes_[begin];
    if (stage_.memory_bytes.has_value() && bytes > *stage_.memory_bytes) {
      return kImpossible;
    }
    return stage_.fixed_seconds + seconds_[end] - seconds_[begin];
  }

 private:
  const StageCost& stage_;
  const std::vector<double> seconds_;
  const std::vector<int64_t> bytes_;
};

}  // namespace

absl::StatusOr<std::vector<int64_t>> BalanceStages(const std::vector<StageCost>& stages) {
  const auto stage_count = static_cast<int64_t>(stages.size());
  const auto layers = static_cast<int64_t>(stages[0].layer_seconds.size());
  if (stage_count > layers) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d stages for a model of %d layers: a stage needs at least one layer",
                        stage_count, layers));
  }
  // slowest[s][l]: the slowest stage when stages s, s + 1, ... share the layers from l on.
  // first[s][l]: how many of them stage s then takes, the most among equals.
  const std::vector<double> none(layers + 1, kImpossible);
  std::vector<std::vector<double>> slowest(stage_count + 1, none);
  std::vector<std::vector<int64_t>> first(stage_count, std::vector<int64_t>(layers + 1, 0));
  slowest[stage_count][layers] = 0;
  for (int64_t s = stage_count - 1; s >= 0; --s) {
    const RunCost cost(stages[s]);
    for (int64_t begin = 0; begin < layers; ++begin) {
      for (int64_t end = begin + 1; end <= layers; ++end) {
        const double seconds = std::max(cost.Of(begin, end), slowest[s + 1][end]);
        if (seconds <= slowest[s][begin] && seconds < kImpossible) {
          slowest[s][begin] = seconds;
          first[s][begin] = end - begin;
        }
      }
    }
  }
  if (slowest[0][0] == kImpossible) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "no cut of %d layers into %d stages fits into their memory", layers, stage_count));
  }
  std::vector<int64_t> counts;
  int64_t begin = 0;
  for (int64_t s = 0; s < stage_count; ++s) {
    counts.push_back(first[s][begin]);
    begin += first[s][begin];
  }
  return counts;
}

}  // namespace trireme::topology

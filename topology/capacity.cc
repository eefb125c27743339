#include "topology/capacity.h"

#include <algorithm>
#include <cstdint>

namespace trireme::topology {

double WeightBytes(double parameters, double bits_per_weight) {
  return parameters * bits_per_weight / 8;
}

int64_t TokensThatFit(const KvBudget& budget) {
  const double room = budget.memory_bytes * (1 - budget.kept_back_share) - budget.weight_bytes;
  return static_cast<int64_t>(std::max(0.0, room) / budget.kv_bytes_per_token);
}

double TokensPerSecond(double bytes, double bytes_per_second) { return bytes_per_second / bytes; }

double BitsPerWeight(double bytes, double parameters) { return bytes * 8 / parameters; }

}  // namespace trireme::topology

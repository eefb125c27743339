#include "runtime/model/row_faults.h"

#include <algorithm>
#include <bit>

#include "runtime/weights/finite_scan.h"

namespace trireme::model {
namespace {

constexpr int64_t kTaskValues = int64_t{1} << 16;  // below it waking a thread takes longer

// A quiet NaN whose lowest bits are the place, counted from 1.
constexpr uint32_t kQuietNaN = 0x7FC00000U;
constexpr uint32_t kPayload = 0x003FFFFFU;
constexpr int32_t kFirstPlace = kFaultInEmbedding - 1;

}  // namespace

void FindFaults(const kernels::Execution& execution, const float* x, int64_t columns, int32_t place,
                absl::Span<int32_t> faults) {
  const auto rows = static_cast<int64_t>(faults.size());
  const int64_t task_rows = std::max<int64_t>(1, kTaskValues / std::max<int64_t>(columns, 1));
  const int64_t tasks = (rows + task_rows - 1) / task_rows;
  execution.pool->ParallelFor(tasks, [&](int64_t task_index, int /*worker_index*/) {
    const int64_t end = std::min(rows, (task_index + 1) * task_rows);
    for (int64_t row = task_index * task_rows; row < end; ++row) {
      int32_t& fault = faults[static_cast<size_t>(row)];
      if (fault > place && !weights::AreFinite({x + row * columns, static_cast<size_t>(columns)})) {
        fault = place;
      }
    }
  });
}

void WriteFaults(absl::Span<const int32_t> faults, int64_t columns, float* x) {
  for (size_t row = 0; row < faults.size(); ++row) {
    if (faults[row] != kNoFault) {
      const auto payload = static_cast<uint32_t>(faults[row] - kFirstPlace);
      std::fill_n(x + static_cast<int64_t>(row) * columns, columns,
                  std::bit_cast<float>(kQuietNaN | payload));
    }
  }
}

void ReadFaults(const kernels::Execution& execution, const float* x, int64_t columns, int32_t place,
                absl::Span<int32_t> faults) {
  FindFaults(execution, x, columns, place, faults);
  for (size_t row = 0; row < faults.size(); ++row) {
    const auto bits = std::bit_cast<uint32_t>(x[static_cast<int64_t>(row) * columns]);
    const uint32_t payload = bits & kPayload;
    if (faults[row] != kNoFault && (bits & ~kPayload) == kQuietNaN && payload != 0) {
      faults[row] = std::min(place, static_cast<int32_t>(payload) + kFirstPlace);
    }
  }
}

}  // namespace trireme::model

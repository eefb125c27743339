// A replica without a model whose tokens are times: each is the microsecond at which it was made,
// so that whoever reads it knows how long it was on its way. For benchmarks of what stands between.
#ifndef TRIREME_TESTS_BENCHMARKS_CLOCK_REPLICA_H_
#define TRIREME_TESTS_BENCHMARKS_CLOCK_REPLICA_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "runtime/engine/controller.h"

namespace trireme {

// Of the machine's monotonic clock, which processes share; below 2^31, so that it wraps after 35
// minutes.
int32_t MicrosecondNow();

// Each request gets its first token at once and then one each `period`, until max_tokens.
std::unique_ptr<engine::Controller> MakeClockController(absl::Duration period);

}  // namespace trireme

#endif  // TRIREME_TESTS_BENCHMARKS_CLOCK_REPLICA_H_

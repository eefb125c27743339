// The flags of sampling and stopping, shared by generate and chat.
#ifndef TRIREME_LAUNCHER_GENERATION_FLAGS_H_
#define TRIREME_LAUNCHER_GENERATION_FLAGS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/schedule/request.h"

namespace trireme::launcher {

std::vector<const char*> GenerationFlags();

// A request with options filled in and no prompt. InvalidArgument naming the flag out of range.
absl::StatusOr<schedule::Request> ReadGenerationFlags();

// The sampling flags that were given; the others are left to a server's model.
struct GivenSampling {
  std::optional<float> temperature;
  std::optional<int64_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<uint64_t> seed;
};
GivenSampling ReadGivenSampling();

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_GENERATION_FLAGS_H_

// Rotary positions as a checkpoint describes them: base, rotated part, and every published way to
// stretch them.
#ifndef TRIREME_RUNTIME_SPEC_READ_ROPE_H_
#define TRIREME_RUNTIME_SPEC_READ_ROPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/spec/keys.h"
#include "runtime/spec/model_spec.h"

namespace trireme::spec {

struct RopeQuestion {
  RopePairing pairing = RopePairing::kHalfSplit;
  int64_t head_dim = 0;  // the part that may be rotated
  int64_t context = 0;
  double base = 10000;              // where the checkpoint names none
  bool truncates_yarn = true;       // where the checkpoint does not say
  bool has_yarn_multiplier = true;  // false: mscale and mscale_all_dim are alike (DeepSeek)
};

absl::StatusOr<RopeSpec> ReadRope(const Keys& keys, const RopeQuestion& question);

// The same without any scaling, with the base of windowed layers.
absl::StatusOr<RopeSpec> ReadLocalRope(const Keys& keys, const RopeQuestion& question);

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_READ_ROPE_H_

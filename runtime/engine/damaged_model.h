// The mark of an error that the model's own values caused, not the program: a request that met
// weights which are no finite numbers. To a client it is INTERNAL like a bug; a command that was
// given the file ends with the exit code of a bad checkpoint.
#ifndef TRIREME_RUNTIME_ENGINE_DAMAGED_MODEL_H_
#define TRIREME_RUNTIME_ENGINE_DAMAGED_MODEL_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace trireme::engine {

inline constexpr char kDamagedModelPayload[] = "trireme/damaged-model";

// The same status with the mark.
inline absl::Status AsDamagedModel(absl::Status status) {
  status.SetPayload(kDamagedModelPayload, absl::Cord());
  return status;
}

inline bool IsDamagedModel(const absl::Status& status) {
  return status.GetPayload(kDamagedModelPayload).has_value();
}

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_DAMAGED_MODEL_H_

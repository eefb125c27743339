// From a checkpoint's metadata, whatever its container, to a ModelSpec: one function a family,
// found by the architecture's name. To add a family: docs/adding_a_family.md.
#ifndef TRIREME_RUNTIME_SPEC_FAMILIES_H_
#define TRIREME_RUNTIME_SPEC_FAMILIES_H_

#include "absl/status/statusor.h"
#include "runtime/spec/metadata.h"
#include "runtime/spec/model_spec.h"

namespace trireme::spec {

// Errors name the file and the key: InvalidArgument for a value that cannot be, NotFound for a key
// that must be there, Unimplemented for an architecture or a feature that this build does not know.
absl::StatusOr<ModelSpec> SpecOf(const Metadata& metadata);

}  // namespace trireme::spec

#endif  // TRIREME_RUNTIME_SPEC_FAMILIES_H_

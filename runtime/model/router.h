// Which experts a token uses, and with which weights: from the router's logits, a pure function of
// one row. All ranks compute it alike.
#ifndef TRIREME_RUNTIME_MODEL_ROUTER_H_
#define TRIREME_RUNTIME_MODEL_ROUTER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/spec/model_spec.h"

namespace trireme::model {

// `logits` [experts] (router bias added) become scores on the way. `correction` [experts] is added
// for the choice only, or empty. Fills chosen and weights [experts.used], by falling choice score,
// the lower index first among equals; the chosen ones differ, whatever the logits are. `scratch`
// [experts + groups] is overwritten.
void Route(const spec::ExpertsSpec& experts, absl::Span<float> logits,
           absl::Span<const float> correction, absl::Span<float> scratch,
           absl::Span<int32_t> chosen, absl::Span<float> weights);

}  // namespace trireme::model

#endif  // TRIREME_RUNTIME_MODEL_ROUTER_H_

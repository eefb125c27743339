// Generate's side of a stream: GenerateRequest in, GenerateEvents out.
#ifndef TRIREME_RUNTIME_SERVE_GENERATE_KIND_H_
#define TRIREME_RUNTIME_SERVE_GENERATE_KIND_H_

#include <memory>

#include "runtime/serve/door.h"
#include "runtime/serve/stream_kind.h"

namespace trireme::serve {

// `door` must outlive it.
std::unique_ptr<StreamKind> MakeGenerateKind(Door* door);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_GENERATE_KIND_H_

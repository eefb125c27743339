// Execute's side of a stream: ExecuteRequest in, ExecuteEvents out, fenced by attempt.
#ifndef TRIREME_RUNTIME_SERVE_EXECUTE_KIND_H_
#define TRIREME_RUNTIME_SERVE_EXECUTE_KIND_H_

#include <memory>

#include "runtime/serve/attempt_fence.h"
#include "runtime/serve/door.h"
#include "runtime/serve/stream_kind.h"

namespace trireme::serve {

// `door` and `fence` must outlive it.
std::unique_ptr<StreamKind> MakeExecuteKind(Door* door, AttemptFence* fence);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_EXECUTE_KIND_H_

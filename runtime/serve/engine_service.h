// trireme.v1.Engine, between balancer and replica.
#ifndef TRIREME_RUNTIME_SERVE_ENGINE_SERVICE_H_
#define TRIREME_RUNTIME_SERVE_ENGINE_SERVICE_H_

#include <memory>

#include "runtime/serve/attempt_fence.h"
#include "runtime/serve/door.h"

namespace grpc {
class Service;
}

namespace trireme::serve {

// `door` and `fence` must outlive it. Several may share them: each listener has its own.
std::shared_ptr<grpc::Service> MakeEngineService(Door* door, AttemptFence* fence);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_ENGINE_SERVICE_H_

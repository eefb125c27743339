// trireme.v1.Inference, the public door.
#ifndef TRIREME_RUNTIME_SERVE_INFERENCE_SERVICE_H_
#define TRIREME_RUNTIME_SERVE_INFERENCE_SERVICE_H_

#include <memory>

#include "runtime/serve/door.h"

namespace grpc {
class Service;
}

namespace trireme::serve {

// `door` must outlive it. Several may share one door: each listener has its own.
std::shared_ptr<grpc::Service> MakeInferenceService(Door* door);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_INFERENCE_SERVICE_H_

// The border check of how a request is to be delivered and what may be cached of it: a part of
// validate_request. Pure.
#ifndef TRIREME_RUNTIME_SERVE_VALIDATE_DELIVERY_H_
#define TRIREME_RUNTIME_SERVE_VALIDATE_DELIVERY_H_

#include "runtime/schedule/request.h"
#include "runtime/serve/replica_facade.h"
#include "runtime/serve/violations.h"

// Named only, so that no protobuf header is needed here.
namespace trireme::v1 {
class Cache;
class Delivery;
}  // namespace trireme::v1

namespace trireme::serve {

// What is wrong or not supported here goes to *violations. The tenant is not of the message.
schedule::Delivery CheckDelivery(const v1::Delivery& delivery, const ModelInfo& model,
                                 Violations* violations);
void CheckCache(const v1::Cache& cache, Violations* violations);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_VALIDATE_DELIVERY_H_

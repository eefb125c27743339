// Engine.Lease: a balancer's pings come in, the lease board hears them, each is answered.
#ifndef TRIREME_RUNTIME_SERVE_LEASE_CALL_H_
#define TRIREME_RUNTIME_SERVE_LEASE_CALL_H_

#include "runtime/serve/door.h"

namespace grpc {
class ByteBuffer;
template <class Request, class Response>
class ServerBidiReactor;
}  // namespace grpc

namespace trireme::serve {

// The reactor owns itself.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartLeaseCall(Door* door);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_LEASE_CALL_H_

// Calls with one answer: bytes in, bytes or a status out, computed on the door's threads.
#ifndef TRIREME_RUNTIME_SERVE_UNARY_CALL_H_
#define TRIREME_RUNTIME_SERVE_UNARY_CALL_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/serve/door.h"

namespace grpc {
class ByteBuffer;
class ServerUnaryReactor;
}  // namespace grpc

namespace trireme::serve {

using UnaryHandler = std::function<absl::StatusOr<std::string>(absl::string_view request_bytes)>;

enum class RunOn : uint8_t {
  kTaskPool,  // what computes; refused with OVERLOADED when too much waits
  kCaller,    // what only looks something up
};

// `request` and `response` live until the call is done. The reactor owns itself.
grpc::ServerUnaryReactor* StartUnaryCall(Door* door, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response, RunOn run_on,
                                         UnaryHandler handler);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_UNARY_CALL_H_

// One WatchLoad stream: a report at each change, not more often than load_report_min and not less
// often than load_report_max.
#ifndef TRIREME_RUNTIME_SERVE_LOAD_CALL_H_
#define TRIREME_RUNTIME_SERVE_LOAD_CALL_H_

#include "runtime/serve/door.h"

namespace grpc {
class ByteBuffer;
template <class Message>
class ServerWriteReactor;
}  // namespace grpc

namespace trireme::serve {

// Ends when the client leaves or the server shuts down (UNAVAILABLE). The reactor owns itself.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartLoadCall(Door* door);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_LOAD_CALL_H_

// The calls that stream tokens: reactors between a client and a StreamSession, which says what is
// written and when the call ends.
#ifndef TRIREME_RUNTIME_SERVE_STREAM_CALL_H_
#define TRIREME_RUNTIME_SERVE_STREAM_CALL_H_

#include <memory>

#include "runtime/serve/door.h"
#include "runtime/serve/stream_kind.h"

namespace grpc {
class ByteBuffer;
class CallbackServerContext;
template <class Message>
class ServerWriteReactor;
}  // namespace grpc

namespace trireme::serve {

// Copies the request and returns; the work follows on the door's threads. The reactor owns itself.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartStreamCall(Door* door,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request,
                                                            std::unique_ptr<StreamKind> kind);

// The same for Resume: the session is one that is there.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartResumeCall(Door* door,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_STREAM_CALL_H_

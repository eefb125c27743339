// Between gRPC's byte buffers and messages. The services take raw bytes, so that a message that
// does not parse is INVALID_ARGUMENT with details and parsing happens outside gRPC's threads.
#ifndef TRIREME_RUNTIME_SERVE_BYTE_BUFFERS_H_
#define TRIREME_RUNTIME_SERVE_BYTE_BUFFERS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace grpc {
class ByteBuffer;
}
namespace google::protobuf {
class Message;
}

namespace trireme::serve {

std::string BytesOf(const grpc::ByteBuffer& buffer);

grpc::ByteBuffer BufferOf(absl::string_view bytes);

// Replaces *message. InvalidArgument when the bytes are no such message (cut, a wrong wire type, a
// string that is not UTF-8, nested too deep) or hold more strings, messages and unknown fields than
// any honest request: an empty message takes 2 bytes on the wire and a hundred in memory.
// ResourceExhausted (MESSAGE_TOO_LARGE) above `bytes_max`.
absl::Status ParseMessage(absl::string_view bytes, int64_t bytes_max,
                          google::protobuf::Message* message);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_BYTE_BUFFERS_H_

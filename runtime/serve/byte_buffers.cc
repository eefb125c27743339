#include "runtime/serve/byte_buffers.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

// Elements are what takes memory beyond its bytes. 1024 messages with all fields are some 10 000.
constexpr int64_t kElementsMax = 100'000;
constexpr int kDepthMax = 100;  // protobuf's own

// Counts the elements down from *left without storing anything; false when the bytes are no message
// of this type or there are too many.
bool CountElements(const Descriptor* descriptor, int depth, CodedInputStream* input,
                   int64_t* left) {
  while (const uint32_t tag = input->ReadTag()) {
    const FieldDescriptor* field = descriptor->FindFieldByNumber(static_cast<int>(tag >> 3));
    const uint32_t wire_type = tag & 7;
    uint64_t number = 0;
    uint32_t bytes = 0;
    *left -= field == nullptr || wire_type == 2 ? 1 : 0;
    if (*left < 0) {
      return false;
    }
    switch (wire_type) {
      case 0:
        if (!input->ReadVarint64(&number)) return false;
        break;
      case 1:
        if (!input->Skip(8)) return false;
        break;
      case 5:
        if (!input->Skip(4)) return false;
        break;
      case 2:
        if (!input->ReadVarint32(&bytes) || static_cast<int>(bytes) < 0) return false;
        if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
          const auto limit = input->PushLimit(static_cast<int>(bytes));
          if (depth == 0 || !CountElements(field->message_type(), depth - 1, input, left)) {
            return false;
          }
          input->PopLimit(limit);
        } else if (!input->Skip(static_cast<int>(bytes))) {
          return false;
        }
        break;
      default:
        return false;  // groups, which proto3 does not have
    }
  }
  return input->ConsumedEntireMessage();
}

bool IsModest(absl::string_view bytes, const Descriptor* descriptor) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                         static_cast<int>(bytes.size()));
  int64_t left = kElementsMax;
  return CountElements(descriptor, kDepthMax, &input, &left);
}

}  // namespace

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) {
    return bytes;
  }
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer BufferOf(absl::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status ParseMessage(absl::string_view bytes, int64_t bytes_max,
                          google::protobuf::Message* message) {
  if (static_cast<int64_t>(bytes.size()) > bytes_max) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("the request has ", bytes.size(),
                                                  " bytes; at most ", bytes_max, " are allowed")),
        kReasonMessageTooLarge);
  }
  if (!IsModest(bytes, message->GetDescriptor()) ||
      !message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return WithReason(absl::InvalidArgumentError(absl::StrCat(
                          "the request is no valid ", message->GetTypeName(),
                          ": it is cut, has a wrong wire type, is nested too deep, has more than ",
                          kElementsMax, " parts, or a string is not UTF-8")),
                      kReasonBadParameter);
  }
  return absl::OkStatus();
}

}  // namespace trireme::serve

#include "runtime/serve/byte_buffers.h"

#include <gmock/gmock.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include "google/protobuf/struct.pb.h"
#include "inference.pb.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {
namespace {

TEST(ByteBuffers, GiveBackTheBytes) {
  const std::string bytes("a\0b\xFF", 4);
  EXPECT_EQ(BytesOf(BufferOf(bytes)), bytes);
  EXPECT_EQ(BytesOf(grpc::ByteBuffer()), "");
}

TEST(ByteBuffers, JoinSlices) {
  const grpc::Slice slices[] = {grpc::Slice("ab"), grpc::Slice("c")};
  EXPECT_EQ(BytesOf(grpc::ByteBuffer(slices, 2)), "abc");
}

TEST(ByteBuffers, RefuseMoreBytesThanAllowed) {
  v1::CancelRequest message;
  message.set_request_id("x");
  const std::string bytes = message.SerializeAsString();  // 3 bytes: tag, length, "x"
  EXPECT_TRUE(ParseMessage(bytes, 3, &message).ok());
  const absl::Status status = ParseMessage(bytes, 2, &message);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), kReasonMessageTooLarge);
}

// A8 and A9 of the bad inputs.
TEST(ByteBuffers, RefuseWhatIsNoMessage) {
  std::string deep;  // field 3 (a list) of google.protobuf.ListValue's values, one in another
  google::protobuf::Value value;
  for (int depth = 0; depth < 60; ++depth) {
    google::protobuf::Value outer;
    *outer.mutable_list_value()->add_values() = value;
    value = outer;
  }
  deep = value.SerializeAsString();
  google::protobuf::Value nested;
  EXPECT_FALSE(ParseMessage(deep, 1 << 20, &nested).ok()) << "deeper than 100";

  v1::GenerateRequest message;
  for (const std::string& bytes : {
           std::string("\x0A\x05"
                       "ab"),                // a string of 5 bytes that ends after 2
           std::string("\x0A\x01\xFF"),      // request_id is not UTF-8
           std::string("\x0F\x01"),          // wire type 7
           std::string("\x3A\x02\x0A\x7F"),  // sampling that is cut
       }) {
    const absl::Status status = ParseMessage(bytes, 1 << 20, &message);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), kReasonBadParameter);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("trireme.v1.GenerateRequest"));
  }
}

TEST(ByteBuffers, IgnoreTenThousandUnknownFields) {
  std::string bytes;
  for (int index = 0; index < 10000; ++index) {
    bytes += "\xF8\x7F\x01";  // field 2047, varint 1
  }
  v1::GenerateRequest message;
  EXPECT_TRUE(ParseMessage(bytes, 1 << 20, &message).ok());
}

// 16 MiB of empty chat messages would become a gigabyte; so would stop strings or unknown fields.
TEST(ByteBuffers, RefuseMillionsOfTinyParts) {
  std::string parts;
  for (const std::string& part :
       {std::string("\x0A\x00", 2), std::string("\x1A\x00", 2), std::string("\xFA\x7F\x00", 3)}) {
    parts.clear();
    for (int index = 0; index < 200'000; ++index) {
      parts += part;
    }
    v1::ChatInput chat;  // 1: messages, 3: an entry of template_variables, 2047: unknown
    EXPECT_FALSE(ParseMessage(parts, 16 << 20, &chat).ok());
  }
  v1::GenerateRequest request;
  for (int index = 0; index < 1'000'000; ++index) {
    request.mutable_tokens()->add_token_ids(index);
  }
  const std::string ids = request.SerializeAsString();
  EXPECT_TRUE(ParseMessage(ids, 16 << 20, &request).ok()) << "numbers take only their bytes";
}

}  // namespace
}  // namespace trireme::serve

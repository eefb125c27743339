#include "tests/support/service_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "runtime/base/check.h"
#include "runtime/serve/byte_buffers.h"

namespace trireme {
namespace {

class GrpcStream final : public ServiceStream {
 public:
  GrpcStream(grpc::GenericStub* stub, const std::string& method, const std::string& request,
             absl::Duration deadline) {
    if (deadline != absl::InfiniteDuration()) {
      context_.set_deadline(std::chrono::system_clock::now() +
                            absl::ToChronoMicroseconds(deadline));
    }
    call_ = stub->PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    if (!Await()) {
      return;
    }
    call_->WriteLast(serve::BufferOf(request), grpc::WriteOptions(), this);
    Await();
  }

  ~GrpcStream() override {
    if (!finished_) {
      context_.TryCancel();
      Finish();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  bool Read(std::string* bytes) override {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!Await()) {
      return false;
    }
    *bytes = serve::BytesOf(buffer);
    return true;
  }

  void Cancel() override { context_.TryCancel(); }

  CallResult Finish() override {
    grpc::Status status;
    finished_ = true;
    call_->Finish(&status, this);
    Await();
    CallResult result = ReadDetails(static_cast<absl::StatusCode>(status.error_code()),
                                    status.error_message(), status.error_details());
    for (const auto& [key, value] : context_.GetServerTrailingMetadata()) {
      result.trailers[std::string(key.data(), key.size())] =
          std::string(value.data(), value.size());
    }
    return result;
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    CHECK(queue_.Next(&tag, &ok));
    return ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

class GrpcClient final : public ServiceClient {
 public:
  explicit GrpcClient(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // A small window: a client that does not read holds its stream up after kilobytes, not some
    // megabytes.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }

  std::unique_ptr<ServiceStream> Open(const std::string& method, const std::string& request,
                                      absl::Duration deadline) override {
    return std::make_unique<GrpcStream>(stub_.get(), method, request, deadline);
  }

  CallResult Call(const std::string& method, const std::string& request, std::string* response,
                  absl::Duration deadline) override {
    GrpcStream stream(stub_.get(), method, request, deadline);
    std::string more;
    if (stream.Read(response)) {
      stream.Read(&more);
    }
    return stream.Finish();
  }

 private:
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace

std::string CallResult::ToString() const {
  std::string text = absl::StrCat(absl::StatusCodeToString(code), " [", reason, "] ", message);
  for (const FieldViolation& violation : violations) {
    absl::StrAppend(&text, " {", violation.field, ": ", violation.description, "}");
  }
  return text;
}

CallResult ReadDetails(absl::StatusCode code, const std::string& message,
                       const std::string& details) {
  CallResult result;
  result.code = code;
  result.message = message;
  google::rpc::Status status;
  if (details.empty() || !status.ParseFromString(details)) {
    return result;
  }
  for (const google::protobuf::Any& any : status.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad_request;
    google::rpc::ResourceInfo resource;
    if (any.UnpackTo(&info)) {
      result.reason = info.reason();
      result.domain = info.domain();
    } else if (any.UnpackTo(&bad_request)) {
      for (const auto& violation : bad_request.field_violations()) {
        result.violations.push_back({violation.field(), violation.description()});
      }
    } else if (any.UnpackTo(&resource)) {
      result.resource_type = resource.resource_type();
    } else if (any.Is<google::rpc::RetryInfo>()) {
      result.has_retry_info = true;
    }
  }
  return result;
}

std::unique_ptr<ServiceClient> ServiceClient::Connect(const std::string& address) {
  return std::make_unique<GrpcClient>(address);
}

}  // namespace trireme

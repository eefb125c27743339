#include "runtime/serve/unary_call.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "runtime/base/error_reason.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/grpc_status.h"

namespace trireme::serve {
namespace {

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(Door* door, grpc::ByteBuffer* response) : door_(door), response_(response) {}

  void Run(const grpc::ByteBuffer& request, const UnaryHandler& handler) {
    absl::StatusOr<std::string> answer = handler(BytesOf(request));
    if (!answer.ok()) {
      Fail(answer.status());
      return;
    }
    *response_ = BufferOf(*answer);
    Finish(grpc::Status::OK);
  }

  void Fail(const absl::Status& status) {
    Finish(ToGrpcStatus(status, door_->NoteIncident(status)));
  }

  void OnDone() override { delete this; }

 private:
  Door* const door_;
  grpc::ByteBuffer* const response_;
};

}  // namespace

grpc::ServerUnaryReactor* StartUnaryCall(Door* door, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response, RunOn run_on,
                                         UnaryHandler handler) {
  auto* call = new UnaryCall(door, response);
  if (run_on == RunOn::kCaller) {
    call->Run(*request, handler);
    return call;
  }
  const bool queued = door->tasks().Submit(
      [call, request, handler = std::move(handler)] { call->Run(*request, handler); });
  if (!queued) {
    call->Fail(WithReason(
        absl::ResourceExhaustedError("too many requests wait to be read; try again soon"),
        kReasonOverloaded));
  }
  return call;
}

}  // namespace trireme::serve

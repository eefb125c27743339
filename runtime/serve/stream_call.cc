#include "runtime/serve/stream_call.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "inference.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/grpc_status.h"
#include "runtime/serve/stream_session.h"
#include "runtime/serve/validate_request.h"

namespace trireme::serve {
namespace {

// Time until the client's deadline, measured once; only durations travel on.
absl::Duration TimeLeft(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return absl::InfiniteDuration();
  }
  return absl::FromChrono(deadline) - absl::FromChrono(std::chrono::system_clock::now());
}

std::string Metadata(const grpc::CallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  return found == context.client_metadata().end()
             ? std::string()
             : std::string(found->second.data(), found->second.size());
}

CallFacts FactsOf(const grpc::CallbackServerContext& context) {
  return {.time_left = TimeLeft(context),
          .tenant = Metadata(context, "trireme-tenant"),
          .explain = Metadata(context, "trireme-route-explain") == "1"};
}

absl::Status CheckTenant(const std::string& tenant) {
  Violations violations;
  CheckName("trireme-tenant", tenant, RequestLimits(), &violations);
  return violations.ToStatus();
}

class StreamCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public StreamWire,
                         public std::enable_shared_from_this<StreamCall> {
 public:
  explicit StreamCall(grpc::CallbackServerContext* context) : context_(context) {}

  // Generate or Execute: a session of its own.
  void Start(Door* door, const grpc::ByteBuffer& request, std::unique_ptr<StreamKind> kind) {
    self_ = shared_from_this();
    CallFacts facts = FactsOf(*context_);
    absl::Status status = CheckTenant(facts.tenant);
    session_ = std::make_shared<StreamSession>(door, std::move(kind), std::move(facts));
    session_->Open(self_);
    if (status.ok()) {
      status = Begin(door, request);
    }
    if (!status.ok()) {
      session_->End(status);
    }
  }

  // Resume: a session that is there.
  void Join(Door* door, const grpc::ByteBuffer& request) {
    self_ = shared_from_this();
    const absl::Status status = TryJoin(door, BytesOf(request));
    if (!status.ok()) {
      session_ = nullptr;
      context_->AddTrailingMetadata("trireme-last-seq", "0");
      ServerWriteReactor::Finish(ToGrpcStatus(status, door->NoteIncident(status)));
    }
  }

  void Write(const std::string& event) override {
    buffer_ = BufferOf(event);
    StartWrite(&buffer_);
  }

  void WriteLast(const std::string& event, const StreamTrailers& trailers) override {
    AddTrailers(trailers);
    buffer_ = BufferOf(event);
    StartWriteAndFinish(&buffer_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void Finish(const absl::Status& status, const StreamTrailers& trailers) override {
    AddTrailers(trailers);
    std::string incident;
    for (const auto& [key, value] : trailers) {
      if (key == "trireme-incident") {
        incident = value;
      }
    }
    ServerWriteReactor::Finish(status.ok() ? grpc::Status::OK : ToGrpcStatus(status, incident));
  }

  void Cut() override { context_->TryCancel(); }

  void OnWriteDone(bool ok) override {
    if (session_ != nullptr) {
      session_->OnWritten(this, ok);
    }
  }

  void OnCancel() override {
    if (session_ != nullptr) {
      session_->OnLost(this);
    }
  }

  void OnDone() override {
    const std::shared_ptr<StreamCall> self = std::move(self_);
    if (session_ != nullptr) {
      session_->OnGone(this);
    }
  }

 private:
  absl::Status Begin(Door* door, const grpc::ByteBuffer& request) {
    if (request.Length() <= kQuickBytesMax) {
      std::string bytes = BytesOf(request);
      if (session_->IsQuick(bytes)) {
        session_->Begin(bytes);
        return absl::OkStatus();
      }
    }
    if (!door->tasks().Submit(
            [session = session_, copy = request] { session->Begin(BytesOf(copy)); })) {
      return WithReason(
          absl::ResourceExhaustedError("too many requests wait to be read; try again soon"),
          kReasonOverloaded);
    }
    return absl::OkStatus();
  }

  absl::Status TryJoin(Door* door, const std::string& bytes) {
    if (door->options().resume_grace <= absl::ZeroDuration()) {
      return WithReason(absl::UnimplementedError(
                            "this server does not keep streams of clients that left; a balancer "
                            "does"),
                        kReasonMethodNotSupported);
    }
    v1::ResumeRequest request;
    if (absl::Status status = ParseMessage(bytes, door->options().request_bytes_max, &request);
        !status.ok()) {
      return status;
    }
    const CallFacts facts = FactsOf(*context_);
    session_ = door->resume_board().Find(request.request_id());
    if (session_ == nullptr) {
      return WithReason(absl::NotFoundError(absl::StrCat(
                            "there is no stream ", Quoted(request.request_id()),
                            " to resume: it ended long ago, was never here, or named no "
                            "request_id; ask again with Generate")),
                        kReasonRequest);
    }
    return session_->Attach(self_, request.after_seq(), facts.tenant);
  }

  void AddTrailers(const StreamTrailers& trailers) {
    for (const auto& [key, value] : trailers) {
      context_->AddTrailingMetadata(key, value);
    }
  }

  grpc::CallbackServerContext* const context_;
  std::shared_ptr<StreamCall> self_;        // until OnDone: gRPC holds a raw pointer till then
  std::shared_ptr<StreamSession> session_;  // constant after Start or Join
  grpc::ByteBuffer buffer_;                 // must live until OnWriteDone
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartStreamCall(Door* door,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request,
                                                            std::unique_ptr<StreamKind> kind) {
  auto call = std::make_shared<StreamCall>(context);
  StreamCall* reactor = call.get();
  call->Start(door, *request, std::move(kind));
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartResumeCall(Door* door,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request) {
  auto call = std::make_shared<StreamCall>(context);
  StreamCall* reactor = call.get();
  call->Join(door, *request);
  return reactor;
}

}  // namespace trireme::serve

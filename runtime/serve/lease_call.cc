#include "runtime/serve/lease_call.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine.pb.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/grpc_status.h"
#include "runtime/serve/validate_request.h"

namespace trireme::serve {
namespace {

class LeaseCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                        public LiveCall,
                        public std::enable_shared_from_this<LeaseCall> {
 public:
  explicit LeaseCall(Door* door) : door_(door), id_(absl::StrCat("!", door->MakeRequestId())) {}

  void Start() {
    self_ = shared_from_this();
    if (absl::Status status = door_->watches().Add(id_, weak_from_this()); !status.ok()) {
      End(status);
      return;
    }
    StartRead(&read_buffer_);
  }

  // One read or write at a time: a ping is answered before the next one is read.
  void OnReadDone(bool ok) override {
    if (!ok) {
      End(absl::OkStatus());
      return;
    }
    v1::LeasePing ping;
    if (absl::Status status = Read(&ping); !status.ok()) {
      End(status);
      return;
    }
    door_->leases()->Ping(ping.lease());
    v1::LeasePong pong;
    if (const ReplicaFacade* replica = door_->replica(); replica != nullptr) {
      pong.set_epoch(replica->epoch);
    }
    MutexLock lock(&mutex_);
    if (!ended_) {
      write_buffer_ = BufferOf(pong.SerializeAsString());
      StartWrite(&write_buffer_);
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    if (!ended_ && ok) {
      StartRead(&read_buffer_);
    }
  }

  void OnCancel() override { End(absl::CancelledError("the balancer left")); }

  void End(const absl::Status& status) override {
    MutexLock lock(&mutex_);
    if (!ended_) {
      ended_ = true;
      Finish(status.ok() ? grpc::Status::OK : ToGrpcStatus(status, ""));
    }
  }

  void OnDone() override {
    const std::shared_ptr<LeaseCall> self = std::move(self_);
    {
      // Whoever called Finish has left the lock.
      MutexLock lock(&mutex_);
    }
    door_->watches().Remove(id_);
  }

 private:
  absl::Status Read(v1::LeasePing* ping) const {
    if (absl::Status status =
            ParseMessage(BytesOf(read_buffer_), door_->options().request_bytes_max, ping);
        !status.ok()) {
      return status;
    }
    Violations violations;
    CheckName("lease", ping->lease(), RequestLimits(), &violations);
    return violations.ToStatus();
  }

  Door* const door_;
  const std::string id_;
  std::shared_ptr<LeaseCall> self_;
  grpc::ByteBuffer read_buffer_;
  Mutex mutex_;
  grpc::ByteBuffer write_buffer_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartLeaseCall(Door* door) {
  auto call = std::make_shared<LeaseCall>(door);
  LeaseCall* reactor = call.get();
  call->Start();
  return reactor;
}

}  // namespace trireme::serve

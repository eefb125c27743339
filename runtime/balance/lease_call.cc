#include "runtime/balance/lease_call.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "engine.grpc.pb.h"
#include "runtime/base/mutex.h"

namespace trireme::balance {
namespace {

class GrpcLeaseCall final : public grpc::ClientBidiReactor<v1::LeasePing, v1::LeasePong>,
                            public LeaseCall,
                            public std::enable_shared_from_this<GrpcLeaseCall> {
 public:
  GrpcLeaseCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& lease,
                std::function<void(const LeaseCall*)> on_done)
      : stub_(v1::Engine::NewStub(channel)), on_done_(std::move(on_done)) {
    ping_.set_lease(lease);
  }

  void Begin() {
    self_ = shared_from_this();
    stub_->async()->Lease(&context_, this);
    AddHold();  // pings come from outside of reactions
    StartRead(&pong_);
    StartCall();
  }

  void Ping() override {
    MutexLock lock(&mutex_);
    if (!writing_ && !ended_) {
      writing_ = true;
      StartWrite(&ping_);
    }
  }

  void Cancel() override {
    context_.TryCancel();
    End();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      StartRead(&pong_);
    } else {
      End();
    }
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      writing_ = false;
    }
    if (!ok) {
      End();
    }
  }

  void OnDone(const grpc::Status&) override {
    const std::shared_ptr<GrpcLeaseCall> self = std::move(self_);
    on_done_(this);
  }

 private:
  void End() {
    {
      MutexLock lock(&mutex_);
      if (ended_) {
        return;
      }
      ended_ = true;
    }
    RemoveHold();
  }

  const std::unique_ptr<v1::Engine::Stub> stub_;
  const std::function<void(const LeaseCall*)> on_done_;
  grpc::ClientContext context_;
  v1::LeasePing ping_;
  v1::LeasePong pong_;
  std::shared_ptr<GrpcLeaseCall> self_;
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::shared_ptr<LeaseCall> LeaseCall::Start(const std::shared_ptr<grpc::Channel>& channel,
                                            const std::string& lease,
                                            std::function<void(const LeaseCall*)> on_done) {
  auto call = std::make_shared<GrpcLeaseCall>(channel, lease, std::move(on_done));
  call->Begin();
  return call;
}

}  // namespace trireme::balance

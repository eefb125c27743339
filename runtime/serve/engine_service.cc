#include "runtime/serve/engine_service.h"

#include "engine.grpc.pb.h"
#include "runtime/serve/execute_kind.h"
#include "runtime/serve/lease_call.h"
#include "runtime/serve/load_call.h"
#include "runtime/serve/stream_call.h"

namespace trireme::serve {
namespace {

using RawEngine =
    v1::Engine::WithRawCallbackMethod_Execute<v1::Engine::WithRawCallbackMethod_WatchLoad<
        v1::Engine::WithRawCallbackMethod_Lease<v1::Engine::Service>>>;

class EngineService final : public RawEngine {
 public:
  EngineService(Door* door, AttemptFence* fence) : door_(door), fence_(fence) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Execute(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request) override {
    return StartStreamCall(door_, context, request, MakeExecuteKind(door_, fence_));
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchLoad(grpc::CallbackServerContext*,
                                                        const grpc::ByteBuffer*) override {
    return StartLoadCall(door_);
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Lease(
      grpc::CallbackServerContext*) override {
    return StartLeaseCall(door_);
  }

 private:
  Door* const door_;
  AttemptFence* const fence_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeEngineService(Door* door, AttemptFence* fence) {
  return std::make_shared<EngineService>(door, fence);
}

}  // namespace trireme::serve

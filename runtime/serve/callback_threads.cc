#include "runtime/serve/callback_threads.h"

#include <grpc/support/cpu.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <memory>

#include "engine.grpc.pb.h"
#include "runtime/base/mutex.h"

namespace trireme::serve {
namespace {

constexpr int kThreadsMin = 2;
constexpr int kThreadsMax = 16;

int ThreadsOfGrpc() {
  return std::clamp(static_cast<int>(gpr_cpu_num_cores()) / 2, kThreadsMin, kThreadsMax);
}

// A channel that leads nowhere and has made a call, whose end may keep the thread that hears of it.
class Keeper final : public grpc::ClientReadReactor<v1::LoadReport> {
 public:
  Keeper()
      : stub_(v1::Engine::NewStub(
            grpc::CreateChannel("unix:/nowhere", grpc::InsecureChannelCredentials()))) {
    stub_->async()->WatchLoad(&context_, &request_, this);
    StartCall();
  }

  void OnDone(const grpc::Status&) override {
    if (ThreadsOfGrpc() == kThreadsMin) {
      never_.WaitForNotification();
    }
  }

 private:
  const std::unique_ptr<v1::Engine::Stub> stub_;
  const v1::WatchLoadRequest request_;
  grpc::ClientContext context_;
  Notification never_;
};

}  // namespace

void KeepCallbackThreads() {
  static auto* const keeper = new Keeper;  // for the life of the process
  (void)keeper;
}

int CallbackThreadCount() {
  const int threads = ThreadsOfGrpc();
  return threads == kThreadsMin ? 1 : threads;
}

}  // namespace trireme::serve

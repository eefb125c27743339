#include "runtime/serve/server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/impl/service_type.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/serve/admin_service.h"
#include "runtime/serve/engine_service.h"
#include "runtime/serve/health_board.h"
#include "runtime/serve/inference_service.h"
#include "runtime/serve/listener.h"
#include "runtime/serve/service_metrics.h"

namespace trireme::serve {
namespace {

// How many requests' attempts are remembered: some minutes of traffic of one replica.
constexpr size_t kFencedRequestsMax = 16384;
constexpr int64_t kAdminRequestBytesMax = int64_t{1} << 20;
constexpr char kInferenceName[] = "trireme.v1.Inference";

// gRPC sends the last statuses while it shuts down; a client that does not read is cut after this.
constexpr absl::Duration kShutdownPatience = absl::Seconds(1);

absl::Status DrainingStatus() {
  return WithReason(absl::UnavailableError("this replica is draining; try another one"),
                    kReasonDraining);
}

class ReplicaServer final : public Server {
 public:
  ReplicaServer(ServerOptions options, Clock* clock)
      : options_(std::move(options)),
        door_(options_.door, clock),
        metrics_(options_.door.metrics, &door_, options_.status),
        fence_(kFencedRequestsMax) {
    health_.Set("", Health::kNotServing);
    health_.Set(kInferenceName, Health::kNotServing);
    if (options_.fault_injection) {
      health_.Set(kFaultInjectionName, Health::kNotServing);
    }
  }

  ~ReplicaServer() override {
    Shutdown();
    std::thread drain_thread;
    {
      MutexLock lock(&mutex_);
      drain_thread = std::move(drain_thread_);
    }
    if (drain_thread.joinable()) {
      drain_thread.join();
    }
  }

  absl::Status Listen();

  int port() const override { return public_listener_->port(); }
  int admin_port() const override {
    return admin_listener_ == nullptr ? 0 : admin_listener_->port();
  }

  void Open(ReplicaFacade replica) override;
  void SetServing(bool serving) override;
  void Drain(absl::Duration deadline) override;
  void EndStreams(const absl::Status& reason) override;
  bool WaitForStreams(absl::Duration patience) override {
    return door_.live_calls().WaitUntilNone(patience);
  }
  void Shutdown() override;
  void Wait() override { stopped_.WaitForNotification(); }

 private:
  void RunDrain(absl::Duration deadline);

  const ServerOptions options_;
  HealthBoard health_;
  Door door_;
  const ServiceMetrics metrics_;
  AttemptFence fence_;
  Notification drain_now_;  // a second Drain, or Shutdown: no more patience
  Notification stopped_;
  Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread drain_thread_ ABSL_GUARDED_BY(mutex_);
  // Last: gone before what their services use.
  std::unique_ptr<Listener> public_listener_;
  std::unique_ptr<Listener> admin_listener_;
};

absl::Status ReplicaServer::Listen() {
  ListenerOptions listener;
  listener.address = options_.listen;
  listener.reflection = options_.reflection_on_public;
  listener.request_bytes_max = options_.door.request_bytes_max;
  listener.metadata_bytes_max = options_.metadata_bytes_max;
  listener.concurrent_streams_max = options_.concurrent_streams_max;
  listener.memory_bytes_max = options_.memory_bytes_max;
  listener.handshake_timeout = options_.handshake_timeout;
  ASSIGN_OR_RETURN(public_listener_, Listener::Create(listener, {MakeInferenceService(&door_),
                                                                 MakeEngineService(&door_, &fence_),
                                                                 MakeHealthService(&health_)}));
  if (options_.admin_listen.empty()) {
    return absl::OkStatus();
  }
  AdminHooks hooks;
  hooks.status = options_.status;
  hooks.drain = [this](absl::Duration deadline) { Drain(deadline); };
  hooks.drain_deadline = options_.drain_deadline;
  hooks.reload = options_.reload;
  listener.address = options_.admin_listen;
  listener.reflection = true;
  listener.request_bytes_max = kAdminRequestBytesMax;
  // Inference and Engine are here too, so that reflection describes them to an operator's tools.
  ASSIGN_OR_RETURN(
      admin_listener_,
      Listener::Create(listener,
                       {MakeAdminService(&door_, std::move(hooks)), MakeHealthService(&health_),
                        MakeInferenceService(&door_), MakeEngineService(&door_, &fence_)}));
  return absl::OkStatus();
}

void ReplicaServer::Open(ReplicaFacade replica) {
  const std::string model_name = absl::StrCat(kInferenceName, "/", replica.model.id);
  door_.Open(std::move(replica));
  health_.Set(model_name, Health::kNotServing);
  SetServing(true);
}

void ReplicaServer::SetServing(bool serving) {
  if (door_.phase() == Phase::kServing) {
    health_.SetAll(serving ? Health::kServing : Health::kNotServing);
  }
}

void ReplicaServer::Drain(absl::Duration deadline) {
  MutexLock lock(&mutex_);
  if (shut_down_) {
    return;
  }
  if (!draining_) {
    draining_ = true;
    drain_thread_ = std::thread([this, deadline] { RunDrain(deadline); });
  } else if (!hurried_) {
    hurried_ = true;
    drain_now_.Notify();
  }
}

// Requests that come while NOT_SERVING is announced are still served: who balances may not have
// heard of it yet.
void ReplicaServer::RunDrain(absl::Duration deadline) {
  health_.SetAll(Health::kNotServing);
  drain_now_.WaitForNotificationWithTimeout(options_.drain_announce);
  door_.SetDraining();
  const ReplicaFacade* replica = door_.replica();
  if (replica != nullptr) {
    replica->controller->Drain([] {});
  }
  const absl::Time give_up = absl::Now() + deadline;
  constexpr absl::Duration kSlice = absl::Milliseconds(50);
  bool none_left = false;
  while (!none_left && !drain_now_.HasBeenNotified() && absl::Now() < give_up) {
    none_left = door_.live_calls().WaitUntilNone(std::min(kSlice, give_up - absl::Now()));
  }
  if (!none_left) {
    Log(LogLevel::kWarning, absl::StrCat("drain ends streams count=", door_.live_calls().count()));
    door_.live_calls().EndAll(DrainingStatus());
    door_.live_calls().WaitUntilNone(kShutdownPatience);
  }
  Shutdown();
}

void ReplicaServer::EndStreams(const absl::Status& reason) {
  door_.SetLost(reason);
  door_.live_calls().EndAll(reason);
  health_.SetAll(Health::kNotServing);
}

void ReplicaServer::Shutdown() {
  {
    MutexLock lock(&mutex_);
    if (shut_down_) {
      return;
    }
    shut_down_ = true;
    if (!hurried_) {
      hurried_ = true;
      drain_now_.Notify();
    }
  }
  door_.SetDraining();
  health_.SetAll(Health::kNotServing);
  health_.Shutdown();
  door_.live_calls().EndAll(DrainingStatus());
  door_.watches().EndAll(DrainingStatus());
  if (public_listener_ != nullptr) {
    public_listener_->Shutdown(kShutdownPatience);
  }
  if (admin_listener_ != nullptr) {
    admin_listener_->Shutdown(kShutdownPatience);
  }
  stopped_.Notify();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Create(ServerOptions options, Clock* clock) {
  // Both write lines that clients can cause at will; our statuses say the same.
  google::protobuf::SetLogHandler(nullptr);
  gpr_set_log_function([](gpr_log_func_args* line) { Log(LogLevel::kDebug, line->message); });
  if (options.door.seed == 0) {
    std::random_device entropy;
    options.door.seed = (uint64_t{entropy()} << 32) | entropy();
  }
  auto server =
      std::make_unique<ReplicaServer>(std::move(options), clock == nullptr ? SteadyClock() : clock);
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace trireme::serve

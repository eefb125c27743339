#include "launcher/fleet_service.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "fleet.grpc.pb.h"
#include "launcher/fleet_messages.h"
#include "runtime/serve/grpc_status.h"
#include "runtime/serve/listener.h"

namespace trireme::launcher {
namespace {

constexpr int64_t kRequestBytesMax = int64_t{1} << 20;
constexpr absl::Duration kCallLimit = absl::Seconds(5);

class FleetService final : public v1::Fleet::CallbackService {
 public:
  explicit FleetService(FleetControl control) : control_(std::move(control)) {}

  grpc::ServerUnaryReactor* GetFleet(grpc::CallbackServerContext* context,
                                     const v1::GetFleetRequest*, v1::FleetStatus* out) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    SetFleetStatus(control_.view(), out);
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* DrainReplica(grpc::CallbackServerContext* context,
                                         const v1::DrainReplicaRequest* request,
                                         v1::DrainReplicaResponse*) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    control_.drain(request->name(), request->restart(), [reactor](const absl::Status& status) {
      reactor->Finish(status.ok() ? grpc::Status::OK : serve::ToGrpcStatus(status, "fleet"));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context, const v1::StopRequest*,
                                 v1::StopResponse*) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    control_.stop();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const FleetControl control_;
};

class GrpcFleetServer : public FleetServer {
 public:
  explicit GrpcFleetServer(std::unique_ptr<serve::Listener> listener)
      : listener_(std::move(listener)) {}
  ~GrpcFleetServer() override { listener_->Shutdown(absl::ZeroDuration()); }

 private:
  const std::unique_ptr<serve::Listener> listener_;
};

// One call of the client: `call` is made with a stub, a context and a deadline.
template <typename Call>
absl::Status Ask(const std::string& address, const Call& call) {
  const auto stub =
      v1::Fleet::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kCallLimit));
  const grpc::Status status = call(stub.get(), &context);
  if (status.ok()) {
    return absl::OkStatus();
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError(absl::StrCat("no supervisor answers at ", address,
                                               "; is `trireme up` running? (",
                                               status.error_message(), ")"));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<FleetServer>> FleetServer::Listen(const std::string& address,
                                                                 FleetControl control) {
  serve::ListenerOptions options;
  options.address = address;
  options.reflection = true;
  options.request_bytes_max = kRequestBytesMax;
  options.metadata_bytes_max = 16 << 10;
  options.concurrent_streams_max = 64;
  options.memory_bytes_max = int64_t{64} << 20;
  options.handshake_timeout = absl::Seconds(3);
  std::vector<std::shared_ptr<grpc::Service>> services = {
      std::make_shared<FleetService>(std::move(control))};
  absl::StatusOr<std::unique_ptr<serve::Listener>> listener =
      serve::Listener::Create(options, std::move(services));
  if (!listener.ok()) {
    return listener.status();
  }
  return std::make_unique<GrpcFleetServer>(*std::move(listener));
}

absl::StatusOr<FleetView> GetFleet(const std::string& address) {
  v1::FleetStatus fleet;
  const absl::Status status =
      Ask(address, [&fleet](v1::Fleet::Stub* stub, grpc::ClientContext* context) {
        return stub->GetFleet(context, v1::GetFleetRequest(), &fleet);
      });
  if (!status.ok()) {
    return status;
  }
  return FleetViewOf(fleet);
}

absl::Status DrainChild(const std::string& address, const std::string& name, bool restart) {
  v1::DrainReplicaRequest request;
  request.set_name(name);
  request.set_restart(restart);
  return Ask(address, [&request](v1::Fleet::Stub* stub, grpc::ClientContext* context) {
    v1::DrainReplicaResponse response;
    return stub->DrainReplica(context, request, &response);
  });
}

absl::Status StopFleet(const std::string& address) {
  return Ask(address, [](v1::Fleet::Stub* stub, grpc::ClientContext* context) {
    v1::StopResponse response;
    return stub->Stop(context, v1::StopRequest(), &response);
  });
}

}  // namespace trireme::launcher

#include "runtime/serve/listener.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/serve/callback_threads.h"

namespace trireme::serve {
namespace {

// gRPC's own refusal of a large message has no details. Within this margin above the limit our
// services see the message and refuse it with MESSAGE_TOO_LARGE.
constexpr int64_t kMessageMarginBytes = int64_t{1} << 20;
constexpr absl::string_view kUnixPrefix = "unix:";

constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kPingIntervalMinMs = 20'000;
constexpr int kConnectionIdleMaxMs = 600'000;

struct HostPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address,
                     "\" is no address to listen on; write HOST:PORT with a port "
                     "of 0 to 65535, such as 127.0.0.1:7000"));
  }
  HostPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']') {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

// gRPC does not say why an address cannot be had; the system does.
absl::Status WhyNot(const std::string& address) {
  ASSIGN_OR_RETURN(const HostPort parts, SplitAddress(address));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found);
  if (result != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address, ": host \"",
                                                   parts.host, "\": ", gai_strerror(result)));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  const int descriptor = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
  const absl::Cleanup close_descriptor = [descriptor] { close(descriptor); };
  std::string reason = "the address cannot be used";
  if (bind(descriptor, found->ai_addr, found->ai_addrlen) != 0) {
    reason = errno == EADDRINUSE ? "another process listens there; stop it, or choose another port"
                                 : std::strerror(errno);
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address, ": ", reason));
}

// A program that links gRPC's reflection has it on all its servers; this leaves it to one.
class ReflectionOption final : public grpc::ServerBuilderOption {
 public:
  explicit ReflectionOption(bool reflection) : reflection_(reflection) {}

  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->clear();
    if (reflection_) {
      plugins->push_back(std::make_unique<grpc::reflection::ProtoServerReflectionPlugin>());
    }
  }

 private:
  const bool reflection_;
};

class GrpcListener final : public Listener {
 public:
  GrpcListener(std::unique_ptr<grpc::Server> server,
               std::vector<std::shared_ptr<grpc::Service>> services, int port,
               std::string unix_path)
      : services_(std::move(services)),
        server_(std::move(server)),
        port_(port),
        unix_path_(std::move(unix_path)) {}

  ~GrpcListener() override { Shutdown(absl::ZeroDuration()); }

  int port() const override { return port_; }

  void Shutdown(absl::Duration patience) override {
    server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(patience));
    if (!unix_path_.empty()) {
      unlink(unix_path_.c_str());
    }
  }

 private:
  const std::vector<std::shared_ptr<grpc::Service>> services_;
  const std::unique_ptr<grpc::Server> server_;
  const int port_;
  const std::string unix_path_;
};

void SetLimits(const ListenerOptions& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(
      static_cast<int>(options.request_bytes_max + kMessageMarginBytes));
  // A small compressed message may unpack to gigabytes before any limit sees it.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, options.metadata_bytes_max);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.concurrent_streams_max);
  builder->AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(options.handshake_timeout)));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kPingIntervalMinMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kConnectionIdleMaxMs);
  grpc::ResourceQuota quota("trireme");
  quota.Resize(static_cast<size_t>(options.memory_bytes_max));
  builder->SetResourceQuota(quota);
  // Only reflection is synchronous; it needs one thread.
  builder->SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder->SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder->SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    const ListenerOptions& options, std::vector<std::shared_ptr<grpc::Service>> services) {
  const bool is_unix = absl::StartsWith(options.address, kUnixPrefix);
  const std::string unix_path = is_unix ? options.address.substr(kUnixPrefix.size()) : "";
  if (!is_unix) {
    RETURN_IF_ERROR(SplitAddress(options.address).status());
  }
  KeepCallbackThreads();
  grpc::ServerBuilder builder;
  SetLimits(options, &builder);
  builder.SetOption(std::make_unique<ReflectionOption>(options.reflection));
  for (const std::shared_ptr<grpc::Service>& service : services) {
    builder.RegisterService(service.get());
  }
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  // Nobody else may connect between the creation of the socket and the chmod.
  const mode_t old_mask = is_unix ? umask(0177) : 0;
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (is_unix) {
    umask(old_mask);
  }
  if (server == nullptr || port == 0) {
    if (is_unix) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot listen on ", options.address,
                       ": the path is taken or cannot be written; choose another"));
    }
    return WhyNot(options.address);
  }
  return std::make_unique<GrpcListener>(std::move(server), std::move(services), is_unix ? 0 : port,
                                        unix_path);
}

}  // namespace trireme::serve

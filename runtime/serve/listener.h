// One gRPC server object on one address, with every limit set explicitly.
#ifndef TRIREME_RUNTIME_SERVE_LISTENER_H_
#define TRIREME_RUNTIME_SERVE_LISTENER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace grpc {
class Service;
}

namespace trireme::serve {

struct ListenerOptions {
  std::string address;  // HOST:PORT or unix:PATH
  bool reflection = false;
  int64_t request_bytes_max = 0;
  int metadata_bytes_max = 0;
  int concurrent_streams_max = 0;
  int64_t memory_bytes_max = 0;
  absl::Duration handshake_timeout;
};

class Listener {
 public:
  // Listens at once. Errors as Server::Create.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(
      const ListenerOptions& options, std::vector<std::shared_ptr<grpc::Service>> services);
  virtual ~Listener() = default;  // shuts down

  virtual int port() const = 0;  // 0 for a Unix socket

  // Stops listening, waits `patience` for open calls, then cuts them. Blocks.
  virtual void Shutdown(absl::Duration patience) = 0;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_LISTENER_H_

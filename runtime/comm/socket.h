// TCP sockets as the ranks of a replica use them: numeric addresses, deadlines, no signals, no
// delay. For connections between ranks only; clients talk gRPC (runtime/serve).
#ifndef TRIREME_RUNTIME_COMM_SOCKET_H_
#define TRIREME_RUNTIME_COMM_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace trireme::comm {

// Owns a file descriptor; -1 is none.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void Close();

 private:
  int descriptor_ = -1;
};

struct Listener {
  Socket socket;
  uint16_t port = 0;
};

enum class ListenScope : uint8_t { kLoopback, kAllInterfaces };

// Listens on a port the system chooses. FailedPrecondition when the system refuses.
absl::StatusOr<Listener> Listen(ListenScope scope);

// Numeric addresses of this machine's interfaces that are up, loopback left out, IPv4 first.
// `interface` keeps only that one ("" keeps all); NotFound names those that exist.
absl::StatusOr<std::vector<std::string>> LocalAddresses(const std::string& interface);

// A connection to the first of `addresses` that answers, tried in turn again and again until
// `timeout` is over. DeadlineExceeded lists what was tried and the last error.
absl::StatusOr<Socket> Connect(absl::Span<const std::string> addresses, uint16_t port,
                               absl::Duration timeout);

// The next connection. DeadlineExceeded after `timeout`.
absl::StatusOr<Socket> Accept(const Listener& listener, absl::Duration timeout);

// Exactly these bytes within `timeout`, for handshakes. Unavailable when the peer closes.
absl::Status SendWithin(const Socket& socket, absl::Span<const std::byte> bytes,
                        absl::Duration timeout);
absl::Status ReceiveWithin(const Socket& socket, absl::Span<std::byte> bytes,
                           absl::Duration timeout);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_SOCKET_H_

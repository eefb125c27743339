#include "runtime/comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"

namespace trireme::comm {
namespace {

constexpr int kBacklog = 128;
// One address that swallows packets must not use up the time of the others.
constexpr absl::Duration kConnectTimeoutOfOneAddress = absl::Seconds(2);
constexpr absl::Duration kPauseBetweenRounds = absl::Milliseconds(20);

// Poll's result until `deadline`: true when ready, false when time is over.
bool PollUntil(int descriptor, int16_t events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - SteadyClock()->Now();
    pollfd entry = {.fd = descriptor, .events = events, .revents = 0};
    const auto wait_ms =
        static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0, 60'000));
    const int ready = ::poll(&entry, 1, left > absl::ZeroDuration() ? wait_ms : 0);
    if (ready > 0) {
      return true;
    }
    if (left <= absl::ZeroDuration()) {
      return false;
    }
  }
}

void SetOptions(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

absl::StatusOr<Listener> ListenOn(const sockaddr* address, socklen_t address_bytes) {
  Listener listener = {
      .socket = Socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)), .port = 0};
  const int descriptor = listener.socket.descriptor();
  const int off = 0;
  if (descriptor >= 0 && address->sa_family == AF_INET6) {
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  sockaddr_storage bound = {};
  socklen_t bound_bytes = sizeof(bound);
  if (descriptor < 0 || ::bind(descriptor, address, address_bytes) != 0 ||
      ::listen(descriptor, kBacklog) != 0 ||
      ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &bound_bytes) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "cannot listen on a TCP port for the other ranks: %s", std::strerror(errno)));
  }
  SetOptions(descriptor);
  listener.port =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                        : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  return listener;
}

absl::StatusOr<Socket> ConnectOnce(const std::string& address, uint16_t port, absl::Time deadline) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port_text = absl::StrFormat("%d", port);
  const int error = ::getaddrinfo(address.c_str(), port_text.c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is not a numeric address: %s", address, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) {
    return absl::FailedPreconditionError(std::strerror(errno));
  }
  int failure = 0;
  if (::connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) != 0) {
    failure = errno;
    if (failure == EINPROGRESS) {
      failure = ETIMEDOUT;
      socklen_t failure_bytes = sizeof(failure);
      if (PollUntil(socket.descriptor(), POLLOUT, deadline)) {
        ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failure, &failure_bytes);
      }
    }
  }
  if (failure != 0) {
    return absl::UnavailableError(std::strerror(failure));
  }
  SetOptions(socket.descriptor());
  return socket;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    Close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

Socket::~Socket() { Close(); }

void Socket::Close() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

absl::StatusOr<Listener> Listen(ListenScope scope) {
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(scope == ListenScope::kLoopback ? INADDR_LOOPBACK : INADDR_ANY);
  if (scope == ListenScope::kAllInterfaces) {
    sockaddr_in6 any6 = {};
    any6.sin6_family = AF_INET6;
    any6.sin6_addr = in6addr_any;
    auto listener = ListenOn(reinterpret_cast<const sockaddr*>(&any6), sizeof(any6));
    if (listener.ok()) {
      return listener;
    }
  }
  return ListenOn(reinterpret_cast<const sockaddr*>(&any), sizeof(any));
}

absl::StatusOr<std::vector<std::string>> LocalAddresses(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot list network interfaces: %s", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<std::string> version_four;
  std::vector<std::string> version_six;
  std::vector<std::string> names;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    if (std::find(names.begin(), names.end(), entry->ifa_name) == names.end()) {
      names.emplace_back(entry->ifa_name);
    }
    if (!interface.empty() && interface != entry->ifa_name) {
      continue;
    }
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
      version_four.emplace_back(text.data());
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (!IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) {  // means nothing on another host
        ::inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size());
        version_six.emplace_back(text.data());
      }
    }
  }
  if (!interface.empty() && std::find(names.begin(), names.end(), interface) == names.end()) {
    return absl::NotFoundError(absl::StrFormat("no network interface \"%s\" is up here; found: %s",
                                               interface, absl::StrJoin(names, ", ")));
  }
  version_four.insert(version_four.end(), version_six.begin(), version_six.end());
  return version_four;
}

absl::StatusOr<Socket> Connect(absl::Span<const std::string> addresses, uint16_t port,
                               absl::Duration timeout) {
  const absl::Time deadline = SteadyClock()->Now() + timeout;
  std::string last_error = "no address is known";
  while (true) {
    for (const std::string& address : addresses) {
      const absl::Time now = SteadyClock()->Now();
      auto socket =
          ConnectOnce(address, port, std::min(deadline, now + kConnectTimeoutOfOneAddress));
      if (socket.ok()) {
        return socket;
      }
      last_error = absl::StrFormat("%s: %s", address, socket.status().message());
    }
    if (SteadyClock()->Now() + kPauseBetweenRounds >= deadline) {
      return absl::DeadlineExceededError(absl::StrFormat(
          "cannot connect to port %d of %s within %s (%s)", port, absl::StrJoin(addresses, ", "),
          absl::FormatDuration(timeout), last_error));
    }
    ::poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kPauseBetweenRounds)));
  }
}

absl::StatusOr<Socket> Accept(const Listener& listener, absl::Duration timeout) {
  const absl::Time deadline = SteadyClock()->Now() + timeout;
  while (PollUntil(listener.socket.descriptor(), POLLIN, deadline)) {
    Socket socket(
        ::accept4(listener.socket.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      SetOptions(socket.descriptor());
      return socket;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "cannot accept a connection: %s; raise the limit of open files", std::strerror(errno)));
    }
  }
  return absl::DeadlineExceededError(
      absl::StrFormat("nobody connected within %s", absl::FormatDuration(timeout)));
}

absl::Status SendWithin(const Socket& socket, absl::Span<const std::byte> bytes,
                        absl::Duration timeout) {
  const absl::Time deadline = SteadyClock()->Now() + timeout;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return absl::UnavailableError(absl::StrFormat("send: %s", std::strerror(errno)));
    } else if (!PollUntil(socket.descriptor(), POLLOUT, deadline)) {
      return absl::DeadlineExceededError("the peer takes no bytes");
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveWithin(const Socket& socket, absl::Span<std::byte> bytes,
                           absl::Duration timeout) {
  const absl::Time deadline = SteadyClock()->Now() + timeout;
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (received > 0) {
      bytes.remove_prefix(static_cast<size_t>(received));
    } else if (received == 0) {
      return absl::UnavailableError("the peer closed the connection");
    } else if (errno != EAGAIN && errno != EINTR) {
      return absl::UnavailableError(absl::StrFormat("receive: %s", std::strerror(errno)));
    } else if (!PollUntil(socket.descriptor(), POLLIN, deadline)) {
      return absl::DeadlineExceededError(
          absl::StrFormat("no bytes came within %s", absl::FormatDuration(timeout)));
    }
  }
  return absl::OkStatus();
}

}  // namespace trireme::comm

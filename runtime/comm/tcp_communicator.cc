#include "runtime/comm/tcp_communicator.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/abort_state.h"
#include "runtime/comm/message.h"
#include "runtime/comm/peer_communicator.h"
#include "runtime/comm/rendezvous.h"

namespace trireme::comm {
namespace {

struct FrameHeader {
  uint64_t magic;
  uint64_t length;
};
constexpr uint64_t kFrameMagic = 0x3145'4d41'5246'5254;  // "TRFRAME1"

// Room for the messages of a group of 8 without an allocation.
constexpr size_t kInlineMessages = 8;

// One message on its way; the header counts as its first bytes.
struct SendProgress {
  int peer;
  FrameHeader header;
  absl::Span<const std::byte> bytes;
  size_t done = 0;

  size_t total() const { return sizeof(header) + bytes.size(); }
};
struct ReceiveProgress {
  int peer;
  FrameHeader header;
  absl::Span<std::byte> bytes;
  size_t done = 0;

  size_t total() const { return sizeof(header) + bytes.size(); }
};

// The rest of header and bytes after `done`, as two pieces of which the first may be empty.
std::array<iovec, 2> Rest(void* header, void* bytes, size_t bytes_count, size_t done) {
  const size_t header_done = std::min(done, sizeof(FrameHeader));
  const size_t bytes_done = done - header_done;
  return {iovec{static_cast<char*>(header) + header_done, sizeof(FrameHeader) - header_done},
          iovec{static_cast<char*>(bytes) + bytes_done, bytes_count - bytes_done}};
}

class TcpCommunicator final : public PeerCommunicator {
 public:
  TcpCommunicator(int own_rank, std::vector<Socket> sockets, Socket abort_event)
      : PeerCommunicator(own_rank, static_cast<int>(sockets.size())),
        sockets_(std::move(sockets)),
        abort_event_(std::move(abort_event)) {}

  void Abort(absl::Status reason) override {
    if (abort_.Set(std::move(reason))) {
      const uint64_t one = 1;  // never read, so that every later poll returns at once
      [[maybe_unused]] const ssize_t written =
          ::write(abort_event_.descriptor(), &one, sizeof(one));
    }
  }

  bool IsWaiting() const override { return waiting_.load(std::memory_order_relaxed) > 0; }

 protected:
  absl::Status Transfer(absl::Span<const Outgoing> sends,
                        absl::Span<const Incoming> receives) override;
  absl::Status State() const override { return abort_.Get(); }

 private:
  using Sends = absl::InlinedVector<SendProgress, kInlineMessages>;
  using Receives = absl::InlinedVector<ReceiveProgress, kInlineMessages>;

  absl::Status Move(Sends& sends, Receives& receives, bool& moved);
  absl::StatusOr<size_t> SendSome(SendProgress& send);
  absl::StatusOr<size_t> ReceiveSome(ReceiveProgress& receive);
  absl::Status CheckHeader(const ReceiveProgress& receive);
  void Sleep(const Sends& sends, const Receives& receives);
  absl::Status Lose(absl::Status status);

  const std::vector<Socket> sockets_;  // [size()]; the own one is closed
  const Socket abort_event_;
  AbortState abort_;
  std::atomic<int> waiting_{0};
};

absl::Status TcpCommunicator::Transfer(absl::Span<const Outgoing> sends,
                                       absl::Span<const Incoming> receives) {
  Sends sending;
  Receives receiving;
  for (const Outgoing& send : sends) {
    sending.push_back({.peer = send.peer,
                       .header = {.magic = kFrameMagic, .length = send.bytes.size()},
                       .bytes = send.bytes});
  }
  for (const Incoming& receive : receives) {
    receiving.push_back({.peer = receive.peer, .header = {}, .bytes = receive.bytes});
  }
  while (true) {
    RETURN_IF_ERROR(abort_.Get());
    bool moved = false;
    absl::Status status = Move(sending, receiving, moved);
    if (!status.ok()) {
      return Lose(std::move(status));
    }
    if (sending.empty() && receiving.empty()) {
      return absl::OkStatus();
    }
    if (!moved) {
      Sleep(sending, receiving);
    }
  }
}

// The first reason ends the group: its connections are in the middle of frames.
absl::Status TcpCommunicator::Lose(absl::Status status) {
  Abort(std::move(status));
  return abort_.Get();
}

absl::Status TcpCommunicator::Move(Sends& sends, Receives& receives, bool& moved) {
  for (size_t i = 0; i < sends.size();) {
    ASSIGN_OR_RETURN(const size_t sent, SendSome(sends[i]));
    moved = moved || sent > 0;
    sends[i].done += sent;
    if (sends[i].done == sends[i].total()) {
      sends.erase(sends.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  for (size_t i = 0; i < receives.size();) {
    ASSIGN_OR_RETURN(const size_t received, ReceiveSome(receives[i]));
    moved = moved || received > 0;
    receives[i].done += received;
    if (receives[i].done >= sizeof(FrameHeader)) {
      RETURN_IF_ERROR(CheckHeader(receives[i]));
    }
    if (receives[i].done == receives[i].total()) {
      receives.erase(receives.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> TcpCommunicator::SendSome(SendProgress& send) {
  auto pieces =
      Rest(&send.header, const_cast<std::byte*>(send.bytes.data()), send.bytes.size(), send.done);
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t sent = ::sendmsg(sockets_[static_cast<size_t>(send.peer)].descriptor(), &message,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    return absl::UnavailableError(
        absl::StrFormat("rank %d is lost: send: %s", send.peer, std::strerror(errno)));
  }
  return sent < 0 ? 0 : static_cast<size_t>(sent);
}

absl::StatusOr<size_t> TcpCommunicator::ReceiveSome(ReceiveProgress& receive) {
  // The header alone first: only a message of the right size may touch the caller's memory.
  const bool in_header = receive.done < sizeof(FrameHeader);
  auto pieces = Rest(&receive.header, receive.bytes.data(), receive.bytes.size(), receive.done);
  const iovec& piece = in_header ? pieces[0] : pieces[1];
  if (piece.iov_len == 0) {
    return 0;
  }
  const ssize_t received = ::recv(sockets_[static_cast<size_t>(receive.peer)].descriptor(),
                                  piece.iov_base, piece.iov_len, MSG_DONTWAIT);
  if (received == 0) {
    return absl::UnavailableError(
        absl::StrFormat("rank %d is lost: it closed its connection", receive.peer));
  }
  if (received < 0 && errno != EAGAIN && errno != EINTR) {
    return absl::UnavailableError(
        absl::StrFormat("rank %d is lost: receive: %s", receive.peer, std::strerror(errno)));
  }
  return received < 0 ? 0 : static_cast<size_t>(received);
}

absl::Status TcpCommunicator::CheckHeader(const ReceiveProgress& receive) {
  if (receive.header.magic != kFrameMagic) {
    return absl::InternalError(
        absl::StrFormat("rank %d sent bytes that are no message of this protocol", receive.peer));
  }
  if (receive.header.length != receive.bytes.size()) {
    return absl::InternalError(
        absl::StrFormat("ranks diverged: rank %d sent %d bytes where rank %d receives %d",
                        receive.peer, receive.header.length, rank(), receive.bytes.size()));
  }
  return absl::OkStatus();
}

void TcpCommunicator::Sleep(const Sends& sends, const Receives& receives) {
  absl::InlinedVector<pollfd, 2 * kInlineMessages + 1> entries;
  entries.push_back({.fd = abort_event_.descriptor(), .events = POLLIN, .revents = 0});
  for (const SendProgress& send : sends) {
    entries.push_back({.fd = sockets_[static_cast<size_t>(send.peer)].descriptor(),
                       .events = POLLOUT,
                       .revents = 0});
  }
  for (const ReceiveProgress& receive : receives) {
    entries.push_back({.fd = sockets_[static_cast<size_t>(receive.peer)].descriptor(),
                       .events = POLLIN,
                       .revents = 0});
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  ::poll(entries.data(), entries.size(), -1);  // ends with bytes, room, a loss or Abort
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

std::string MissingRanks(const std::vector<Socket>& sockets, int own_rank,
                         absl::Span<const RankPlace> places) {
  std::string text;
  for (size_t peer = static_cast<size_t>(own_rank) + 1; peer < sockets.size(); ++peer) {
    if (!sockets[peer].is_open()) {
      absl::StrAppendFormat(&text, " rank=%d host=%s", peer, places[peer].host);
    }
  }
  return text;
}

// Lower ranks are visited, higher ones welcomed.
absl::StatusOr<std::vector<Socket>> JoinPairs(const OpenDoor& door,
                                              const std::vector<std::string>& offers, int own_rank,
                                              const TcpOptions& options) {
  const absl::Time deadline = SteadyClock()->Now() + options.connect_timeout;
  std::vector<Socket> sockets(offers.size());
  for (int peer = 0; peer < own_rank; ++peer) {
    const auto index = static_cast<size_t>(peer);
    ASSIGN_OR_RETURN(const Offer offer, Offer::Decode(offers[index]));
    auto socket = Visit(offer, own_rank, deadline - SteadyClock()->Now());
    if (!socket.ok()) {
      return absl::Status(socket.status().code(),
                          absl::StrFormat("rank=%d host=%s: %s", peer, options.places[index].host,
                                          socket.status().message()));
    }
    sockets[index] = *std::move(socket);
  }
  for (size_t welcomed = static_cast<size_t>(own_rank) + 1; welcomed < offers.size();) {
    auto visitor = Welcome(door, deadline - SteadyClock()->Now());
    if (!visitor.ok()) {
      return absl::Status(visitor.status().code(),
                          absl::StrFormat("%s; missing:%s", visitor.status().message(),
                                          MissingRanks(sockets, own_rank, options.places)));
    }
    const bool expected = visitor->rank > own_rank &&
                          visitor->rank < static_cast<int>(offers.size()) &&
                          !sockets[static_cast<size_t>(visitor->rank)].is_open();
    if (expected) {
      sockets[static_cast<size_t>(visitor->rank)] = std::move(visitor->socket);
      ++welcomed;
    }
  }
  return sockets;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeTcpCommunicator(Communicator& world,
                                                                  const TcpOptions& options) {
  CHECK_EQ(options.places.size(), static_cast<size_t>(world.size()));
  if (world.size() > kTcpRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d ranks joined by TCP: wanted at most %d", world.size(), kTcpRanksMax));
  }
  const ListenScope scope =
      AreOnOneHost(options.places) ? ListenScope::kLoopback : ListenScope::kAllInterfaces;
  // All ranks take part in the exchange even if this one cannot listen, so that none waits for it.
  absl::StatusOr<OpenDoor> door = OpenADoor(scope, options.interface);
  ASSIGN_OR_RETURN(
      const std::vector<std::string> offers,
      GatherMessages(world, door.ok() ? door->offer.Encode() : std::string(), kOfferBytesMax));
  RETURN_IF_ERROR(door.status());
  ASSIGN_OR_RETURN(std::vector<Socket> sockets, JoinPairs(*door, offers, world.rank(), options));
  Socket abort_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!abort_event.is_open()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("no event descriptor: %s", std::strerror(errno)));
  }
  return std::make_unique<TcpCommunicator>(world.rank(), std::move(sockets),
                                           std::move(abort_event));
}

}  // namespace trireme::comm

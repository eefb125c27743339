#include "runtime/comm/control_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/control_message.h"
#include "runtime/comm/message.h"
#include "runtime/comm/rendezvous.h"

namespace trireme::comm {
namespace {

constexpr int kTickMilliseconds = 100;
// A peer that takes no bytes gets no more heartbeats; silence in the other direction tells.
constexpr size_t kOutboxBytesMax = 4096;
constexpr absl::Duration kLeaveTimeout = absl::Milliseconds(100);

struct Peer {
  int rank = 0;
  Socket socket;  // closed once the peer has left
  ControlDecoder decoder;
  std::string outbox;
};

// How long a heartbeat may lie unacknowledged by the peer's kernel, which a stopped process does
// not hinder: a network that loses only what this rank sends is noticed as early as one that is
// cut.
absl::Duration AcknowledgementLimit(const MonitorOptions& monitor) {
  return monitor.dead_after - 2 * monitor.heartbeat_period;
}

std::string ReasonOfEnd(ssize_t received, int error) {
  if (received == 0) {
    return "its process ended: the control connection closed";
  }
  if (error == ETIMEDOUT) {
    return "the network to it is cut: it acknowledges nothing that is sent to it";
  }
  return absl::StrFormat("its process ended: control connection: %s", std::strerror(error));
}

class SocketControlLink final : public ControlLink {
 public:
  SocketControlLink(int rank, ControlLinkOptions options, std::vector<Peer> peers,
                    Socket wake_event)
      : rank_(rank),
        options_(std::move(options)),
        wake_event_(std::move(wake_event)),
        peers_(std::move(peers)),
        monitor_(options_.monitor, MemberOf(rank), PeerMembers(), options_.clock->Now()),
        peers_seen_(monitor_.Peers()),
        thread_([this] { Run(); }) {}

  ~SocketControlLink() override { Leave(absl::OkStatus()); }

  void SetIssuedStep(int64_t step) override { issued_step_.store(step, std::memory_order_relaxed); }

  std::vector<PeerHealth> Peers() const override {
    MutexLock lock(&peers_seen_mutex_);
    return peers_seen_;
  }

  void Leave(const absl::Status& reason) override;

 private:
  ControlMonitor::Member MemberOf(int rank) const {
    return {.rank = rank, .host = options_.places[static_cast<size_t>(rank)].host};
  }
  std::vector<ControlMonitor::Member> PeerMembers() const;

  void Run();
  void Poll();
  void Read(Peer& peer);
  void Handle(Peer& peer, const ControlMessage& message);
  void Close(Peer& peer, const std::string& reason);
  void Send(Peer& peer, const ControlMessage& message);
  void Dispatch();
  void ShowPeers();
  void DrainUntilClosed();

  const int rank_;
  const ControlLinkOptions options_;
  const Socket wake_event_;
  std::atomic<int64_t> issued_step_{0};
  std::atomic<bool> is_stopping_{false};
  // The link's thread while it runs, then whoever called Leave:
  std::vector<Peer> peers_;
  ControlMonitor monitor_;
  absl::Time next_heartbeat_ = absl::InfinitePast();
  mutable Mutex peers_seen_mutex_;
  std::vector<PeerHealth> peers_seen_ ABSL_GUARDED_BY(peers_seen_mutex_);
  std::thread thread_;
};

std::vector<ControlMonitor::Member> SocketControlLink::PeerMembers() const {
  std::vector<ControlMonitor::Member> members;
  for (const Peer& peer : peers_) {
    members.push_back(MemberOf(peer.rank));
  }
  return members;
}

void SocketControlLink::Run() {
  while (!is_stopping_.load(std::memory_order_acquire)) {
    // Everything that has come is read before the time is looked at, so that heartbeats that
    // waited in a buffer while this process was stopped count.
    for (Peer& peer : peers_) {
      Read(peer);
    }
    const absl::Time now = options_.clock->Now();
    const Progress progress = options_.progress();
    monitor_.OnProgress(rank_, progress, now);
    monitor_.OnIssuedStep(issued_step_.load(std::memory_order_relaxed), now);
    monitor_.OnTick(now);
    if (now >= next_heartbeat_) {
      next_heartbeat_ = now + options_.monitor.heartbeat_period;
      const std::string report = options_.report ? options_.report() : std::string();
      for (Peer& peer : peers_) {
        Send(peer, {.kind = ControlKind::kHeartbeat,
                    .is_waiting = progress.is_waiting,
                    .code = 0,
                    .finished_step = progress.finished_step,
                    .text = report});
      }
    }
    ShowPeers();
    Dispatch();
    Poll();
  }
}

void SocketControlLink::ShowPeers() {
  std::vector<PeerHealth> peers = monitor_.Peers();
  MutexLock lock(&peers_seen_mutex_);
  peers_seen_.swap(peers);
}

void SocketControlLink::Poll() {
  std::vector<pollfd> entries = {{.fd = wake_event_.descriptor(), .events = POLLIN, .revents = 0}};
  for (const Peer& peer : peers_) {
    if (peer.socket.is_open()) {
      entries.push_back({.fd = peer.socket.descriptor(), .events = POLLIN, .revents = 0});
    }
  }
  ::poll(entries.data(), entries.size(), kTickMilliseconds);
}

void SocketControlLink::Read(Peer& peer) {
  std::array<char, kControlFrameBytesMax> bytes;
  // Bounded: a peer that sends without end must not keep the thread from the others.
  for (int turn = 0; turn < 16 && peer.socket.is_open(); ++turn) {
    const ssize_t received =
        ::recv(peer.socket.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    if (received <= 0) {
      Close(peer, ReasonOfEnd(received, errno));
      return;
    }
    peer.decoder.Append({bytes.data(), static_cast<size_t>(received)});
    while (peer.socket.is_open()) {
      const auto message = peer.decoder.Next();
      if (!message.ok()) {
        Close(peer, std::string(message.status().message()));
      } else if (!message->has_value()) {
        break;
      } else {
        Handle(peer, **message);
      }
    }
  }
}

void SocketControlLink::Handle(Peer& peer, const ControlMessage& message) {
  switch (message.kind) {
    case ControlKind::kHeartbeat:
      monitor_.OnProgress(
          peer.rank, {.finished_step = message.finished_step, .is_waiting = message.is_waiting},
          options_.clock->Now());
      if (!message.text.empty() && options_.on_report) {
        options_.on_report(peer.rank, message.text);
      }
      return;
    case ControlKind::kLeaving:
      monitor_.OnLeaving(peer.rank,
                         absl::Status(static_cast<absl::StatusCode>(message.code), message.text));
      peer.socket.Close();
      return;
  }
}

void SocketControlLink::Close(Peer& peer, const std::string& reason) {
  peer.socket.Close();
  monitor_.OnClosed(peer.rank, reason);
}

void SocketControlLink::Send(Peer& peer, const ControlMessage& message) {
  if (!peer.socket.is_open() || peer.outbox.size() > kOutboxBytesMax) {
    return;
  }
  peer.outbox += EncodeControlMessage(message);
  const ssize_t sent = ::send(peer.socket.descriptor(), peer.outbox.data(), peer.outbox.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) {  // errors are seen by Read, after what the peer may have said at the end
    peer.outbox.erase(0, static_cast<size_t>(sent));
  }
}

void SocketControlLink::Dispatch() {
  for (const ControlEvent& event : monitor_.TakeEvents()) {
    const std::string who = absl::StrFormat("rank=%d host=%s step=%d", event.peer.rank,
                                            event.peer.host, event.peer.finished_step);
    switch (event.kind) {
      case ControlEvent::Kind::kSuspect:
        Log(LogLevel::kWarning, absl::StrFormat("rank is silent %s", who));
        break;
      case ControlEvent::Kind::kRecovered:
        Log(LogLevel::kInfo, absl::StrFormat("rank is heard again %s", who));
        break;
      case ControlEvent::Kind::kLost:
        options_.on_lost(event.peer);
        break;
    }
  }
}

void SocketControlLink::Leave(const absl::Status& reason) {
  if (!thread_.joinable()) {
    return;
  }
  CHECK(std::this_thread::get_id() != thread_.get_id());
  is_stopping_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_event_.descriptor(), &one, sizeof(one));
  thread_.join();
  for (Peer& peer : peers_) {
    Send(peer, {.kind = ControlKind::kLeaving,
                .is_waiting = false,
                .code = static_cast<int32_t>(reason.code()),
                .finished_step = 0,
                .text = std::string(reason.message())});
    if (peer.socket.is_open()) {
      ::shutdown(peer.socket.descriptor(), SHUT_WR);
    }
  }
  DrainUntilClosed();
}

// A socket closed over unread bytes resets the connection, which would take the reason with it.
void SocketControlLink::DrainUntilClosed() {
  std::array<std::byte, kControlFrameBytesMax> bytes;
  const absl::Time deadline = SteadyClock()->Now() + kLeaveTimeout;
  for (Peer& peer : peers_) {
    absl::Status status;
    while (peer.socket.is_open() && status.ok() && SteadyClock()->Now() < deadline) {
      status = ReceiveWithin(peer.socket, absl::MakeSpan(bytes).first(1),
                             deadline - SteadyClock()->Now());
    }
    peer.socket.Close();
  }
}

absl::StatusOr<std::vector<Peer>> WelcomeAll(const OpenDoor& door,
                                             const ControlLinkOptions& options) {
  const absl::Time deadline = SteadyClock()->Now() + options.connect_timeout;
  std::vector<Peer> peers;
  std::vector<bool> is_here(options.places.size());
  while (peers.size() + 1 < options.places.size()) {
    auto visitor = Welcome(door, deadline - SteadyClock()->Now());
    if (!visitor.ok()) {
      std::string missing;
      for (size_t rank = 1; rank < is_here.size(); ++rank) {
        if (!is_here[rank]) {
          absl::StrAppendFormat(&missing, " rank=%d host=%s", rank, options.places[rank].host);
        }
      }
      return absl::Status(visitor.status().code(),
                          absl::StrFormat("control connections: %s; missing:%s",
                                          visitor.status().message(), missing));
    }
    const int rank = visitor->rank;
    if (rank > 0 && rank < static_cast<int>(is_here.size()) &&
        !is_here[static_cast<size_t>(rank)]) {
      is_here[static_cast<size_t>(rank)] = true;
      peers.push_back(
          {.rank = rank, .socket = std::move(visitor->socket), .decoder = {}, .outbox = {}});
    }
  }
  return peers;
}

// Rank 0 gets all other ranks, the others get rank 0.
absl::StatusOr<std::vector<Peer>> JoinPeers(Communicator& world,
                                            const ControlLinkOptions& options) {
  absl::StatusOr<OpenDoor> door = absl::UnavailableError("rank 0 does not listen");
  std::string offer_text;
  if (world.rank() == 0) {
    door = OpenADoor(
        AreOnOneHost(options.places) ? ListenScope::kLoopback : ListenScope::kAllInterfaces,
        options.interface);
    offer_text = door.ok() ? door->offer.Encode() : std::string();
  }
  RETURN_IF_ERROR(BroadcastMessage(world, 0, kOfferBytesMax, offer_text));
  if (world.rank() == 0) {
    RETURN_IF_ERROR(door.status());
    return WelcomeAll(*door, options);
  }
  ASSIGN_OR_RETURN(const Offer offer, Offer::Decode(offer_text));
  ASSIGN_OR_RETURN(Socket socket, Visit(offer, world.rank(), options.connect_timeout));
  std::vector<Peer> peers;
  peers.push_back({.rank = 0, .socket = std::move(socket), .decoder = {}, .outbox = {}});
  return peers;
}

// The link's thread takes no signals: they are for the thread that waits for them.
class ScopedSignalBlock {
 public:
  ScopedSignalBlock() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~ScopedSignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlLink>> ControlLink::Create(Communicator& world,
                                                                 ControlLinkOptions options) {
  CHECK_EQ(options.places.size(), static_cast<size_t>(world.size()));
  CHECK(options.progress != nullptr && options.on_lost != nullptr);
  ASSIGN_OR_RETURN(std::vector<Peer> peers, JoinPeers(world, options));
  Socket wake_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event.is_open()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("no event descriptor: %s", std::strerror(errno)));
  }
  const auto limit_ms =
      static_cast<unsigned>(absl::ToInt64Milliseconds(AcknowledgementLimit(options.monitor)));
  for (const Peer& peer : peers) {
    // At worst it is noticed later.
    (void)::setsockopt(peer.socket.descriptor(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms,
                       sizeof(limit_ms));
  }
  const ScopedSignalBlock block;
  return std::make_unique<SocketControlLink>(world.rank(), std::move(options), std::move(peers),
                                             std::move(wake_event));
}

}  // namespace trireme::comm

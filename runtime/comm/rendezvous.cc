#include "runtime/comm/rendezvous.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"

namespace trireme::comm {
namespace {

constexpr uint32_t kMagic = 0x314d5254;  // "TRM1": the protocol and its version
// A visitor that says nothing must not keep the others out.
constexpr absl::Duration kIntroductionTimeout = absl::Seconds(2);

struct Introduction {
  uint32_t magic;
  int32_t rank;
  uint64_t secret;
};
static_assert(sizeof(Introduction) == 16);

}  // namespace

std::string Offer::Encode() const {
  return absl::StrFormat("%d %d %s", port, secret, absl::StrJoin(addresses, ","));
}

absl::StatusOr<Offer> Offer::Decode(absl::string_view text) {
  const std::vector<std::string> fields = absl::StrSplit(text, ' ');
  Offer offer;
  uint32_t port = 0;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &port) || port == 0 || port > 65535 ||
      !absl::SimpleAtoi(fields[1], &offer.secret)) {
    return absl::InvalidArgumentError("a rank's address record is not \"port secret addresses\"");
  }
  offer.port = static_cast<uint16_t>(port);
  offer.addresses = absl::StrSplit(fields[2], ',', absl::SkipEmpty());
  return offer;
}

absl::StatusOr<OpenDoor> OpenADoor(ListenScope scope, const std::string& interface) {
  OpenDoor door;
  ASSIGN_OR_RETURN(door.listener, Listen(scope));
  if (scope == ListenScope::kLoopback) {
    door.offer.addresses = {"127.0.0.1"};
  } else {
    ASSIGN_OR_RETURN(door.offer.addresses, LocalAddresses(interface));
  }
  door.offer.port = door.listener.port;
  std::random_device random;
  door.offer.secret = static_cast<uint64_t>(random()) << 32 | random();
  return door;
}

absl::StatusOr<Socket> Visit(const Offer& offer, int rank, absl::Duration timeout) {
  ASSIGN_OR_RETURN(Socket socket, Connect(offer.addresses, offer.port, timeout));
  const Introduction introduction = {.magic = kMagic, .rank = rank, .secret = offer.secret};
  RETURN_IF_ERROR(SendWithin(
      socket, {reinterpret_cast<const std::byte*>(&introduction), sizeof(introduction)}, timeout));
  return socket;
}

absl::StatusOr<Visitor> Welcome(const OpenDoor& door, absl::Duration timeout) {
  const absl::Time deadline = SteadyClock()->Now() + timeout;
  while (true) {
    const absl::Duration left = deadline - SteadyClock()->Now();
    ASSIGN_OR_RETURN(Socket socket, Accept(door.listener, left));
    Introduction introduction = {};
    const absl::Status status =
        ReceiveWithin(socket, {reinterpret_cast<std::byte*>(&introduction), sizeof(introduction)},
                      std::min(kIntroductionTimeout, deadline - SteadyClock()->Now()));
    if (status.ok() && introduction.magic == kMagic && introduction.secret == door.offer.secret) {
      return Visitor{.socket = std::move(socket), .rank = introduction.rank};
    }
    Log(LogLevel::kWarning,
        "dropped a connection that does not belong to this start of the replica");
  }
}

}  // namespace trireme::comm

// How two processes of a replica find each other over TCP: an offer says where a rank listens and
// carries a secret; a visitor proves with it that it belongs to this replica and this start.
#ifndef TRIREME_RUNTIME_COMM_RENDEZVOUS_H_
#define TRIREME_RUNTIME_COMM_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/comm/socket.h"

namespace trireme::comm {

// What a listening rank tells the others, over a group they already have.
struct Offer {
  std::vector<std::string> addresses;
  uint16_t port = 0;
  uint64_t secret = 0;

  std::string Encode() const;
  // InvalidArgument when `text` is not an encoded offer.
  static absl::StatusOr<Offer> Decode(absl::string_view text);
};

inline constexpr int64_t kOfferBytesMax = 4096;

// A listener with its offer. `scope` kLoopback offers 127.0.0.1 only, else the addresses of
// `interface` ("" for all). NotFound and FailedPrecondition as in socket.h.
struct OpenDoor {
  Listener listener;
  Offer offer;
};
absl::StatusOr<OpenDoor> OpenADoor(ListenScope scope, const std::string& interface);

// Connects and introduces itself as `rank`.
absl::StatusOr<Socket> Visit(const Offer& offer, int rank, absl::Duration timeout);

// The next visitor that knows the secret; others are dropped and logged. DeadlineExceeded.
struct Visitor {
  Socket socket;
  int rank = 0;  // as it says; the caller checks that it is a rank it waits for
};
absl::StatusOr<Visitor> Welcome(const OpenDoor& door, absl::Duration timeout);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_RENDEZVOUS_H_

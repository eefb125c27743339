// A group whose ranks are processes anywhere, each pair joined by a TCP connection. A rank that
// waits sleeps in the kernel, which also moves the bytes while both sides compute: the kind for
// plans and results (an idle replica costs nothing) and for networks without a fast MPI.
#ifndef TRIREME_RUNTIME_COMM_TCP_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_TCP_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rank_place.h"

namespace trireme::comm {

// Each rank holds a connection to each other one, so a larger group runs out of descriptors.
inline constexpr int kTcpRanksMax = 256;

struct TcpOptions {
  // The places of all ranks of `world`: on one host only the loopback interface is used.
  std::vector<RankPlace> places;
  std::string interface;  // the network interface for other hosts; "" takes any that answers
  absl::Duration connect_timeout = absl::Seconds(30);
};

// A collective over `world`, a group of the same ranks through which addresses and secrets are
// exchanged; it is not used later. A connection that does not know the secret is dropped. Errors:
// DeadlineExceeded with the missing rank and its host, NotFound (interface), InvalidArgument.
absl::StatusOr<std::unique_ptr<Communicator>> MakeTcpCommunicator(Communicator& world,
                                                                  const TcpOptions& options);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_TCP_COMMUNICATOR_H_

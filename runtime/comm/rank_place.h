// Where each rank runs: what decides whether two ranks can share memory, and which addresses they
// reach each other at.
#ifndef TRIREME_RUNTIME_COMM_RANK_PLACE_H_
#define TRIREME_RUNTIME_COMM_RANK_PLACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/comm/communicator.h"

namespace trireme::comm {

struct RankPlace {
  std::string host;  // its name, for people
  // Equal for two ranks exactly when they share a kernel, /dev/shm, host name and network: host
  // names alone are equal for cloned machines and differ for containers of one.
  std::string identity;
};

// Of this process. `host` replaces the system's name when not empty.
RankPlace LocalPlace(const std::string& host);

// A collective: every rank's place, index = rank.
absl::StatusOr<std::vector<RankPlace>> GatherPlaces(Communicator& world, const RankPlace& mine);

// Whether all of them are on one host.
bool AreOnOneHost(absl::Span<const RankPlace> places);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_RANK_PLACE_H_

// A group whose ranks are processes of one host that share a POSIX shared-memory segment.
//
// Rank 0 makes the segment under the given name, the others attach, and the name is removed as soon
// as all have, so nothing is left behind whatever dies later. Each rank holds a file lock on its
// byte of the segment; the kernel drops it with the process, so a waiter sees within 50 ms that its
// peer is gone, even across process-id namespaces. A stopped peer is the control link's to notice.
#ifndef TRIREME_RUNTIME_COMM_SHM_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_SHM_COMMUNICATOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/comm/communicator.h"

namespace trireme::comm {

struct ShmOptions {
  std::string name;  // "/trireme-" and something no other group uses; see shm_open(3)
  int rank = 0;
  int size = 0;  // 1 to kRegionRanksMax (region.h)
  // How long to wait for the other ranks, each of which must make its call within it.
  absl::Duration attach_timeout = absl::Seconds(30);
};

// Returns when all ranks have attached. Errors: AlreadyExists (the name is taken),
// ResourceExhausted
// (/dev/shm too small; has the wanted bytes), DeadlineExceeded (has how many ranks came),
// InvalidArgument, FailedPrecondition (a segment of another size or owner under that name).
absl::StatusOr<std::unique_ptr<Communicator>> MakeShmCommunicator(const ShmOptions& options);

// A name that no other group of any process uses: random. For rank 0, which tells the others.
std::string MakeShmName();

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_SHM_COMMUNICATOR_H_

// A group whose ranks are threads of this process: tests, and replicas that run without MPI.
#ifndef TRIREME_RUNTIME_COMM_THREAD_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_THREAD_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace trireme::comm {

// One communicator for each of `size` ranks, index = rank; each may go to another thread and may
// outlive the others. InvalidArgument outside 1 to kRegionRanksMax (region.h); ResourceExhausted
// without memory.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> MakeThreadCommunicators(int size);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_THREAD_COMMUNICATOR_H_

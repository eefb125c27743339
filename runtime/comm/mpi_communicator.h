// MPI, as thin as it gets: start and end of the process, and groups over non-blocking messages
// between host memory. This is the only library file that knows MPI; a build without it has the
// same functions, which say so.
//
// Open MPI's blocking calls spin at full speed and never notice a stopped peer, so none is made: a
// wait tests its requests, first spinning, then yielding, then sleeping for a part of the time it
// has waited already (at most 5 ms), and looks whether it was aborted each time. A replica that
// ends has ended its streams first: MPI_Abort is called for an injected fault only.
#ifndef TRIREME_RUNTIME_COMM_MPI_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_MPI_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace trireme::comm {

// Whether mpirun or srun started this process as one of several ranks (from its environment; no MPI
// call is made).
bool IsStartedByMpi();

// This process's rank as its launcher put it into the environment; 0 without one. For what has to
// be known before MPI starts, such as which rank speaks for all.
int RankBeforeMpi();

// The ranks of one MPI job. One per process; MPI is entered by one thread at a time (MPI's level
// "serialized", kept by a lock inside), so groups of one world may be used from several threads.
class MpiWorld {
 public:
  // Starts MPI. FailedPrecondition when this build or this process has no MPI, or the library does
  // not let a second thread in.
  static absl::StatusOr<std::unique_ptr<MpiWorld>> Create();

  virtual ~MpiWorld() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The group of these world ranks, in this order; this rank must be among them. Local: nothing is
  // exchanged. Every rank of the group passes the same members and the same `tag` (0 to 32767),
  // which no other group that shares two ranks with it has. An abort of one group ends all groups
  // of the world.
  virtual std::unique_ptr<Communicator> MakeGroup(std::vector<int> members, int tag) = 0;

  // Ends MPI together with all other ranks, when no group is used any more. After an abort it
  // leaves MPI alone and returns the reason: then the process just exits.
  virtual absl::Status Finish() = 0;

  // MPI_Abort, for fault injection: ends every rank without a word. Returns only when MPI does.
  virtual void AbortJob(int code) = 0;
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_MPI_COMMUNICATOR_H_

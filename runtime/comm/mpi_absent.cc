// Stands in for mpi_communicator.cc in a build without MPI.
#include "runtime/comm/mpi_communicator.h"

namespace trireme::comm {

bool IsStartedByMpi() { return false; }

int RankBeforeMpi() { return 0; }

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Create() {
  return absl::FailedPreconditionError(
      "this build has no MPI: install libopenmpi-dev and build with -DTRIREME_WITH_MPI=ON");
}

}  // namespace trireme::comm

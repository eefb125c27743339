// The groups through which one rank of a replica talks, for both ways to run a replica: ranks as
// threads of one process, or as processes (one a rank) under mpirun or srun.
//
//   group      ranks                  threads   processes
//   control    all                    Thread    Tcp: plans out, results back; idle costs nothing
//   tensor     those of one stage     Thread    Shm on one host, else Mpi; Self for one rank
//   pipeline   all; used between      Thread    Mpi, or Tcp where asked for
//              neighbouring stages
//
// Under MPI the MPI library itself is only entered by the worker thread (tensor, pipeline) and at
// start; control runs over own sockets, so a thread that waits for a plan sleeps, and threads that
// answer clients or heartbeats never touch MPI.
#ifndef TRIREME_RUNTIME_COMM_GROUPS_H_
#define TRIREME_RUNTIME_COMM_GROUPS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/mpi_communicator.h"
#include "runtime/comm/rank_place.h"

namespace trireme::comm {

// Ranks of a replica in a grid: rank = stage * tensor_ranks + tensor index.
struct Layout {
  int tensor_ranks = 1;
  int stages = 1;

  int ranks() const { return tensor_ranks * stages; }
  int StageOf(int rank) const { return rank / tensor_ranks; }
  int TensorIndexOf(int rank) const { return rank % tensor_ranks; }
  int RankOf(int stage, int tensor_index) const { return stage * tensor_ranks + tensor_index; }
};

// OK when tensor_ranks is 1, 2, 4 or 8, stages at least 1 and the product at most 256; else
// InvalidArgument with the numbers. Where `world_size` is given it must be the product.
absl::Status CheckLayout(const Layout& layout, std::optional<int> world_size = std::nullopt);

// Owned by the rank's worker; each communicator keeps its own thread rule (communicator.h).
struct RankGroups {
  Layout layout;
  int rank = 0;
  std::vector<RankPlace> places;           // [ranks]; empty for threads
  std::unique_ptr<Communicator> control;   // ranks as in the layout
  std::unique_ptr<Communicator> tensor;    // rank = tensor index
  std::unique_ptr<Communicator> pipeline;  // ranks as in the layout
  std::optional<int> previous_rank;        // of the stage before, in `pipeline`; none at the first
  std::optional<int> next_rank;            // of the stage after; none at the last

  // Aborts all three groups. Any thread, while the groups live.
  void Abort(const absl::Status& reason) const;

  // Whether a verb of any of them is waiting for a peer.
  bool IsWaiting() const;
};

// One for each rank of the layout, index = rank. Errors: CheckLayout's, ResourceExhausted.
absl::StatusOr<std::vector<RankGroups>> MakeThreadGroups(const Layout& layout);

enum class PipelineTransport : uint8_t { kMpi, kTcp };

struct ProcessGroupOptions {
  Layout layout;
  std::string host;       // this host's name in messages; "" takes the system's
  std::string interface;  // network interface between hosts; "" takes any that answers
  PipelineTransport pipeline = PipelineTransport::kMpi;
  absl::Duration timeout = absl::Seconds(30);  // for each group to come together
};

// Called by every rank of the job. `world` must outlive the groups' use. Errors: CheckLayout's, and
// those of the kinds (a rank that does not come is named).
absl::StatusOr<RankGroups> MakeProcessGroups(MpiWorld& world, const ProcessGroupOptions& options);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_GROUPS_H_

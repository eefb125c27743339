// The words of the command that runs one rank of a replica (`trireme serve ...`) and of the one
// that starts the whole replica under its launcher. Pure: `plan` prints what `up` runs, word for
// word.
//
// Terms: a word is one argument, unquoted; the run tag is the value of TRIREME_RUN, which every
// process of a start carries in its environment, so that none of them can be overlooked later.
#ifndef TRIREME_LAUNCHER_REPLICA_COMMAND_H_
#define TRIREME_LAUNCHER_REPLICA_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "topology/cluster.h"

namespace trireme::launcher {

inline constexpr absl::string_view kRunVariable = "TRIREME_RUN";

// What a start adds to the file.
struct ReplicaStart {
  std::string program = "trireme";  // path of the program, the same on all nodes
  std::string run_folder;           // of the supervisor; admin sockets stand in it
  std::string topology_path;        // the file, for balancers to read again; empty: none
  uint64_t epoch = 1;
  // As the planner cut the model; empty: as the file says, or as even as possible.
  std::vector<int64_t> stage_layers;
  int64_t kv_tokens = 0;     // positions of the KV cache, as planned; 0: from the context
  bool is_root = false;      // mpirun asks for a word from root
  std::string fault_folder;  // of the replicas' --fault-injection; empty: none
};

// "FOLDER:NAME:EPOCH".
std::string RunTag(absl::string_view run_folder, absl::string_view name, uint64_t epoch);

// "unix:FOLDER/NAME.sock".
std::string AdminAddress(absl::string_view run_folder, absl::string_view name);

// Whether `host` is this machine without asking anybody: empty, localhost or a loopback address.
bool IsLoopbackHost(absl::string_view host);

int RanksOf(const topology::ClusterReplica& replica);

// Threads of each rank of a stage: as said, else its share of the cores, else 1.
int ThreadsOf(const topology::ClusterStage& stage);

// The cores that one rank is bound to: tensor rank i of n gets the i-th of n equal runs of the
// stage's cores; with fewer cores than ranks they share. Empty: not bound.
std::vector<int> CoresOfRank(const topology::ClusterStage& stage, int tensor_rank);

// The host of each rank: [ranks]. An empty one in the file is "localhost".
std::vector<std::string> HostsOfRanks(const topology::ClusterFile& file,
                                      const topology::ClusterReplica& replica);

// Where others reach the replica: its listening address, with rank 0's host in place of one that
// means all interfaces.
std::string EngineAddress(const topology::ClusterFile& file,
                          const topology::ClusterReplica& replica);

// The program and what follows it, for every rank alike. `replica` is one of the file's.
std::vector<std::string> ServeWords(const topology::ClusterFile& file,
                                    const topology::ClusterReplica& replica,
                                    const ReplicaStart& start);

// The whole command, with the launcher that the replica names in front.
std::vector<std::string> ReplicaWords(const topology::ClusterFile& file,
                                      const topology::ClusterReplica& replica,
                                      const ReplicaStart& start);

// `trireme balance ...` for the balancer process that listens at `listen`.
std::vector<std::string> BalancerWords(const topology::ClusterFile& file, absl::string_view name,
                                       absl::string_view listen, const ReplicaStart& start);

// One line that a POSIX shell reads back as these words.
std::string ShellText(absl::Span<const std::string> words);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_REPLICA_COMMAND_H_

// The srun command of one replica: a step inside a Slurm allocation. Pure: the same words for the
// same file.
#ifndef TRIREME_LAUNCHER_SLURM_COMMAND_H_
#define TRIREME_LAUNCHER_SLURM_COMMAND_H_

#include <string>
#include <vector>

#include "launcher/replica_command.h"
#include "topology/cluster.h"

namespace trireme::launcher {

// `replica` is one of the file's; hosts are Slurm's node names.
std::vector<std::string> SrunWords(const topology::ClusterFile& file,
                                   const topology::ClusterReplica& replica,
                                   const ReplicaStart& start);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_SLURM_COMMAND_H_

// The mpirun command of one replica (Open MPI 4 and 5). Pure: the same words for the same file.
#ifndef TRIREME_LAUNCHER_MPI_COMMAND_H_
#define TRIREME_LAUNCHER_MPI_COMMAND_H_

#include <string>
#include <vector>

#include "launcher/replica_command.h"
#include "topology/cluster.h"

namespace trireme::launcher {

// `replica` is one of the file's. The first two words, env and the run tag, stay in the
// environment of everything that mpirun starts.
std::vector<std::string> MpirunWords(const topology::ClusterFile& file,
                                     const topology::ClusterReplica& replica,
                                     const ReplicaStart& start);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_MPI_COMMAND_H_

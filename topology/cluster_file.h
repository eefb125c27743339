// A topology file (docs/topology_file.md) as a checked value: strict YAML whose keys and values are
// those of the table in cluster_key.h. All mistakes are told at once, each with its line, column,
// key and what was wanted; a file with a mistake gives no cluster at all.
#ifndef TRIREME_TOPOLOGY_CLUSTER_FILE_H_
#define TRIREME_TOPOLOGY_CLUSTER_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "topology/cluster.h"

namespace trireme::topology {

// `file_name` stands before each error. InvalidArgument whose message has a line for each error and
// a last one, "N errors; nothing was started.". What needs the model or the hosts is not checked
// here.
absl::StatusOr<ClusterFile> ParseClusterFile(const std::string& text, absl::string_view file_name);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_CLUSTER_FILE_H_

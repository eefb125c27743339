// The keys of a replica in a topology file, and of the settings that `defaults` gives to all of
// them: a part of the table of cluster_key.h.
#ifndef TRIREME_TOPOLOGY_REPLICA_KEYS_H_
#define TRIREME_TOPOLOGY_REPLICA_KEYS_H_

#include <string>
#include <vector>

#include "topology/cluster_key.h"

namespace trireme::topology {

// What `defaults` and each replica may say; `prefix` ("defaults.") stands before every pattern.
std::vector<ClusterKey> SettingKeys(const std::string& prefix);

// `replicas` and what only a replica has.
std::vector<ClusterKey> ReplicaKeys();

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_REPLICA_KEYS_H_

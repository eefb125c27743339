// What must hold between the keys of a topology file, once each of them is good by itself: names
// that exist, cores and ports used once, stages that fit together. Nothing here looks at hosts or
// models.
#ifndef TRIREME_TOPOLOGY_CLUSTER_RULES_H_
#define TRIREME_TOPOLOGY_CLUSTER_RULES_H_

#include <vector>

#include "topology/cluster_key.h"
#include "topology/file_problem.h"

namespace trireme::topology {

// Resolves the names in the draft (ClusterStage::node_index, ClusterBalancer::replica_indices) and
// adds a problem for each rule that is broken.
void ApplyClusterRules(ClusterDraft* draft, const KeyPlaces& places,
                       std::vector<FileProblem>* problems);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_CLUSTER_RULES_H_

// The keys of a topology file, one table: what may stand where, what it means, and where its value
// goes. The reader (cluster_file.h), "did you mean" and the table of docs/topology_file.md all come
// from it, so they cannot disagree.
//
// Terms: a pattern is a key's path with "*" for a name that the operator chose and "[]" for an
// entry of a list: "replicas.*.stages[].node".
#ifndef TRIREME_TOPOLOGY_CLUSTER_KEY_H_
#define TRIREME_TOPOLOGY_CLUSTER_KEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "topology/cluster.h"

namespace trireme::topology {

inline constexpr int64_t kClusterFileVersion = 1;

// What the reader fills while it walks: the cluster, and the names that are resolved afterwards.
struct ClusterDraft {
  ClusterFile file;
  ReplicaDefaults defaults;
  std::vector<std::vector<std::string>> stage_nodes;  // [replica][stage]
  std::vector<std::string> balancer_replicas;         // empty: all
};

// Where the keys of the map being read put their values. Pointers are null outside such a map.
struct KeyTarget {
  ClusterDraft* draft = nullptr;
  ClusterNode* node = nullptr;
  ClusterReplica* replica = nullptr;
  ClusterStage* stage = nullptr;
  std::string* stage_node = nullptr;
  ReplicaDefaults* settings = nullptr;
};

enum class KeyShape : uint8_t {
  kMap,
  kNamedMaps,  // a map from chosen names to maps: pattern.* follows
  kMapList,    // a list of maps: pattern[] follows
  kScalar,
  kList,  // of scalars
  kScalarOrList,
  kScalarOrMap,
  kUnsupported,  // a known key that this version cannot honour
};

// Puts the value, one string for a scalar and several for a list, where it belongs. For a map it is
// called once at its beginning (with the name, in kNamedMaps) and may move the target.
using KeySetter = absl::Status (*)(KeyTarget& target, absl::Span<const std::string> values);

struct ClusterKey {
  std::string pattern;
  KeyShape shape = KeyShape::kScalar;
  std::string wanted;    // the values, for people
  std::string fallback;  // what holds without the key; "required"
  std::string meaning;
  KeySetter set = nullptr;  // null: nothing to do

  bool is_required() const { return fallback == "required"; }
  // "replicas.*.stages[]" of "replicas.*.stages[].node"; empty at the top.
  std::string parent() const;
  std::string name() const;  // "node"
};

// All keys, parents before their children, in the order in which they are read.
const std::vector<ClusterKey>& ClusterKeys();

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_CLUSTER_KEY_H_

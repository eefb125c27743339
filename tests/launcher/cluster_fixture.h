// A small cluster as a value, for tests of what is made from one.
#ifndef TRIREME_TESTS_LAUNCHER_CLUSTER_FIXTURE_H_
#define TRIREME_TESTS_LAUNCHER_CLUSTER_FIXTURE_H_

#include "topology/cluster.h"

namespace trireme::testing {

// One replica "r1" of two tensor ranks on this host, one balancer.
inline topology::ClusterFile LaptopCluster() {
  topology::ClusterFile file;
  file.name = "laptop";
  file.model = {.id = "small", .path = "/models/small.gguf", .context = 2048};
  file.nodes = {{.name = "here", .cores = {0, 1}}};
  file.replicas = {{.name = "r1",
                    .stages = {{.node_index = 0, .ranks = 2, .cores = {0, 1}}},
                    .engine_listen = "127.0.0.1:7101"}};
  file.balancer = topology::ClusterBalancer{.listen = {"127.0.0.1:8080"}, .replica_indices = {0}};
  return file;
}

// One replica "r1": stage 0 on node-a, stage 1 on node-b, two tensor ranks each.
inline topology::ClusterFile TwoNodesCluster() {
  topology::ClusterFile file;
  file.name = "two";
  file.model = {.path = "/models/small.gguf"};
  file.nodes = {{.name = "n1", .host = "node-a"}, {.name = "n2", .host = "node-b"}};
  topology::ReplicaDefaults settings;
  settings.remote_agent = "/opt/agent.sh";
  settings.interfaces = {.control = "eth0", .fabric = {"ib0", "ib1"}};
  file.replicas = {
      {.name = "r1",
       .stages = {{.node_index = 0, .ranks = 2, .threads = 2, .layers = topology::Range{0, 10}},
                  {.node_index = 1, .ranks = 2, .threads = 1, .layers = topology::Range{10, 30}}},
       .engine_listen = "10.0.0.1:7001",
       .settings = settings}};
  return file;
}

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_LAUNCHER_CLUSTER_FIXTURE_H_

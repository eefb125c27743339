// A topology file with every key that there is, for the tests of its reader.
#ifndef TRIREME_TESTS_TOPOLOGY_CLUSTER_FILE_TEXT_H_
#define TRIREME_TESTS_TOPOLOGY_CLUSTER_FILE_TEXT_H_

namespace trireme::topology {

// One key a line; replica r2 takes everything from `defaults`.
inline constexpr char kWholeClusterFile[] = R"(version: 1
name: prod
model:
  id: smollm
  path: /models/smollm.gguf
  context: 4096
  kv_cache: f32
  activations: float32
  bad_weights: refuse
network:
  bandwidth: 10Gbit/s
  latency: 50us
defaults:
  launcher: mpirun
  remote:
    agent: /opt/agent.sh
  interfaces:
    control: eth0
    fabric: [ib0, ib1]
  memory:
    kv: 2GiB
  timeouts:
    launch: 61s
    connect: 46s
    load: 16min
    warmup: 3min
    heartbeat:
      period: 200ms
      suspect: 900ms
      dead: 3s
    stall: 20s
  drain:
    announce: 3s
    deadline: 90s
  restart:
    backoff: [2s, 30s]
    give_up:
      failures: 4
      within: 5min
nodes:
  n1:
    host: node-a
    cores: 0-3
    memory: 8GiB
    bandwidth: 20GB/s
    operations: 150Gop/s
  n2:
    host: node-b
replicas:
  r1:
    stages:
      - node: n1
        ranks: 2
        cores: 0-1
        threads: 1
        layers: 0-14
      - {node: n2, ranks: 2, layers: 15-29}
    engine:
      listen: node-a:7001
    launcher: mpirun
    remote:
      agent: /opt/other.sh
    interfaces:
      control: eth1
      fabric: [ib2]
    memory:
      kv: 1GiB
    timeouts:
      launch: 1s
      connect: 2s
      load: 3s
      warmup: 4s
      heartbeat:
        period: 5ms
        suspect: 6ms
        dead: 7ms
      stall: auto
    drain:
      announce: 8s
      deadline: 9s
    restart:
      backoff: [10s, 11s]
      give_up:
        failures: 12
        within: 13s
  r2:
    stages:
      - node: n1
        cores: [2, 3]
    engine: {listen: "node-a:7002"}
balancer:
  listen:
    grpc: ["127.0.0.1:8080", "127.0.0.1:8081"]
  replicas: [r2, r1]
  policy:
    kind: predicted-ttft
    bounded_load: 1.5
    explore: 0.02
    stale: 2s
  retry:
    budget: 0.2
    attempts: 3
    resumes: 4
  limits:
    queue: 100
  resume_grace: 5s
observe:
  admin: unix:/run/trireme/admin.sock
  metrics: 127.0.0.1:9400
  log:
    level: debug
    format: json
    content: off
)";

// The smallest one: a replica of one rank.
inline constexpr char kSmallClusterFile[] = R"(version: 1
model: {path: default}
nodes:
  n1: {}
replicas:
  r1:
    stages:
      - {node: n1}
    engine: {listen: "127.0.0.1:7001"}
)";

}  // namespace trireme::topology

#endif  // TRIREME_TESTS_TOPOLOGY_CLUSTER_FILE_TEXT_H_

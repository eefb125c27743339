// The cluster as an operator describes it, as a value: nodes, replicas cut over them, balancers,
// and how all of it is started, watched and stopped. cluster_file.h reads it from YAML; nothing
// here knows of files, processes or models.
//
// Terms: a node is a host (or a network namespace) that ranks run on; a stage is a run of layers on
// one node, cut over its tensor ranks; a replica is one complete model, one MPI job.
#ifndef TRIREME_TOPOLOGY_CLUSTER_H_
#define TRIREME_TOPOLOGY_CLUSTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "topology/file_problem.h"
#include "topology/partition.h"

namespace trireme::topology {

// A path that stands for the model that launcher/default_model.sh keeps.
inline constexpr char kDefaultModelPath[] = "default";

struct ClusterModel {
  std::string id;       // the name that clients use; empty in the file: the file's name
  std::string path;     // the same on all nodes; kDefaultModelPath: launcher/default_model.sh's
  int64_t context = 0;  // positions of one sequence; 0: what the model allows
  std::string kv_cache = "f16";      // a name of cache/kv_format
  std::string activations = "auto";  // auto or float32
  std::string bad_weights = "warn";  // warn or refuse
};

enum class LauncherKind : uint8_t {
  kMpirun,
  kSrun,  // inside a Slurm allocation
  kNone,  // one process, its ranks are threads
};

struct HeartbeatTimes {
  absl::Duration period = absl::Milliseconds(250);
  absl::Duration suspect = absl::Seconds(1);
  absl::Duration dead = absl::Milliseconds(2500);
};

// Deadlines of the phases of a start, and of silence afterwards.
struct ClusterTimeouts {
  absl::Duration launch = absl::Seconds(60);
  absl::Duration connect = absl::Seconds(45);
  absl::Duration load = absl::Minutes(15);
  absl::Duration warmup = absl::Minutes(2);
  HeartbeatTimes heartbeat;
  std::optional<absl::Duration> stall;  // unset: max(10 s, 50 x median step)
};

struct DrainTimes {
  absl::Duration announce = absl::Seconds(2);
  absl::Duration deadline = absl::Seconds(120);
};

struct RestartRule {
  absl::Duration backoff_min = absl::Seconds(1);
  absl::Duration backoff_max = absl::Seconds(60);
  int failures_max = 5;  // with the same exit code within `failures_window`: given up
  absl::Duration failures_window = absl::Minutes(10);
};

// Names of network interfaces; empty: any that answers.
struct Interfaces {
  std::string control;              // control connections and mpirun's own daemons
  std::vector<std::string> fabric;  // between the ranks of a replica
};

// What a replica takes from `defaults`, and may override.
struct ReplicaDefaults {
  LauncherKind launcher = LauncherKind::kMpirun;
  std::string remote_agent;  // program that mpirun calls as AGENT HOST COMMAND...; empty: ssh
  Interfaces interfaces;
  std::optional<int64_t> kv_bytes;  // of one rank; unset: from the context
  ClusterTimeouts timeouts;
  DrainTimes drain;
  RestartRule restart;
};

struct ClusterNode {
  std::string name;
  std::string host;                               // empty in the file: localhost
  std::vector<int> cores;                         // usable ones; empty: not stated
  std::optional<int64_t> memory_bytes;            // for Trireme; unset: what the host has
  std::optional<double> stream_bytes_per_second;  // memory read by all its cores, if stated
  std::optional<double> operations_per_second;    // integer products, if stated
};

// Between any two nodes, for predictions.
struct ClusterNetwork {
  std::optional<double> bytes_per_second;
  std::optional<absl::Duration> latency;  // one way, of a small message
};

struct ClusterStage {
  int node_index = 0;           // into ClusterFile::nodes
  int ranks = 1;                // tensor ranks: 1, 2, 4 or 8
  std::vector<int> cores;       // of this stage, shared out over its ranks; empty: not bound
  int threads = 0;              // of each rank; 0: its cores, or 1
  std::optional<Range> layers;  // unset: balanced
};

struct ClusterReplica {
  std::string name;
  std::vector<ClusterStage> stages;  // the same number of ranks in each
  std::string engine_listen;         // HOST:PORT
  ReplicaDefaults settings;          // the defaults with this replica's own on top
};

struct BalancerPolicy {
  double bounded_load = 1.25;
  double explore = 0.01;
  absl::Duration stale = absl::Seconds(1);
};

struct BalancerRetry {
  double budget = 0.10;  // retries as a share of requests
  int attempts = 2;      // further replicas before the first token
  int resumes = 3;       // further replicas in mid-stream
};

struct BalancerLimits {
  int64_t queue = 2048;  // requests that wait in one balancer
};

struct ClusterBalancer {
  std::vector<std::string> listen;   // HOST:PORT of each balancer process
  std::vector<int> replica_indices;  // into ClusterFile::replicas
  BalancerPolicy policy;
  BalancerRetry retry;
  BalancerLimits limits;
  absl::Duration resume_grace = absl::Seconds(10);  // in which a client may come back
};

struct ClusterObserve {
  std::string admin;    // unix:PATH of the supervisor; those of its children stand beside it
  std::string metrics;  // HOST:PORT of the supervisor's metrics; empty: none
  std::string log_level = "info";
  bool log_json = false;
};

struct ClusterFile {
  std::string name;
  ClusterModel model;
  ClusterNetwork network;
  std::vector<ClusterNode> nodes;
  std::vector<ClusterReplica> replicas;
  std::optional<ClusterBalancer> balancer;  // unset: clients call the replicas
  ClusterObserve observe;
  KeyPlaces places;  // of its keys, for errors that only the model or the hosts show
};

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_CLUSTER_H_

#include "topology/replica_keys.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "topology/cluster.h"
#include "topology/cluster_key.h"
#include "topology/key_values.h"
#include "topology/value_text.h"

namespace trireme::topology {
namespace {

constexpr int64_t kReplicasMax = 256;  // a fleet of one file
constexpr int64_t kStagesMax = 256;
constexpr int64_t kThreadsMax = 1024;  // of one rank
constexpr KeyShape kMap = KeyShape::kMap;
constexpr KeyShape kScalar = KeyShape::kScalar;
constexpr KeyShape kUnsupported = KeyShape::kUnsupported;

absl::Status PutLauncher(absl::string_view text, LauncherKind* place) {
  constexpr LauncherKind kKinds[] = {LauncherKind::kMpirun, LauncherKind::kSrun,
                                     LauncherKind::kNone};
  const absl::StatusOr<int> index = ParseChoice(text, {"mpirun", "srun", "none"});
  if (!index.ok()) {
    return index.status();
  }
  *place = kKinds[*index];
  return absl::OkStatus();
}

absl::Status PutBackoff(Values values, RestartRule* restart) {
  if (values.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", values.size(), " values; wanted two, such as [1s, 60s]"));
  }
  if (absl::Status status = PutPositive(values[0], &restart->backoff_min); !status.ok()) {
    return status;
  }
  return PutPositive(values[1], &restart->backoff_max);
}

absl::Status AddReplica(KeyTarget& target, Values values) {
  std::vector<ClusterReplica>& replicas = target.draft->file.replicas;
  if (absl::Status status = CheckRoom(replicas.size(), kReplicasMax); !status.ok()) {
    return status;
  }
  target.replica = &replicas.emplace_back();
  target.replica->settings = target.draft->defaults;
  target.settings = &target.replica->settings;
  target.draft->stage_nodes.emplace_back();
  return Put(ParseName(values[0]), &target.replica->name);
}

absl::Status AddStage(KeyTarget& target, Values /*values*/) {
  if (absl::Status status = CheckRoom(target.replica->stages.size(), kStagesMax); !status.ok()) {
    return status;
  }
  target.stage = &target.replica->stages.emplace_back();
  target.stage_node = &target.draft->stage_nodes.back().emplace_back();
  return absl::OkStatus();
}

}  // namespace

std::vector<ClusterKey> SettingKeys(const std::string& prefix) {
  std::vector<ClusterKey> keys = {
      {"launcher", kScalar, "`mpirun`, `srun` or `none`", "mpirun",
       "what starts the ranks; none: threads of one process",
       [](KeyTarget& t, Values v) { return PutLauncher(v[0], &t.settings->launcher); }},
      {"remote", KeyShape::kScalarOrMap, "`ssh` or {agent: PATH}", "ssh",
       "how mpirun reaches other hosts",
       [](KeyTarget& t, Values v) {
         t.settings->remote_agent.clear();
         return v.empty() ? absl::OkStatus() : OneOf(v[0], {"ssh"});
       }},
      {"remote.agent", kScalar, "path", "required", "program called as AGENT HOST COMMAND...",
       [](KeyTarget& t, Values v) { return Put(ParseText(v[0]), &t.settings->remote_agent); }},
      {"interfaces", kMap, "map", "any", "names of network interfaces", nullptr},
      {"interfaces.control", kScalar, "name", "any that answers",
       "of control connections and mpirun's daemons",
       [](KeyTarget& t, Values v) {
         return Put(ParseText(v[0]), &t.settings->interfaces.control);
       }},
      {"interfaces.fabric", KeyShape::kList, "list of names", "any that answers",
       "between the ranks of a replica",
       [](KeyTarget& t, Values v) {
         t.settings->interfaces.fabric.clear();
         return PutTexts(v, &t.settings->interfaces.fabric);
       }},
      {"interfaces.service", kUnsupported, "", "", "", nullptr},
      {"min_bandwidth", kUnsupported, "", "", "", nullptr},
      {"memory", kMap, "map", "", "memory of each rank", nullptr},
      {"memory.kv", kScalar, "size, or `auto`", "auto",
       "bytes of keys and values of one rank; auto: the context or 32768 positions, whichever is "
       "more",
       [](KeyTarget& t, Values v) {
         t.settings->kv_bytes.reset();
         return v[0] == "auto" ? absl::OkStatus() : Put(ParseSize(v[0]), &t.settings->kv_bytes);
       }},
      {"memory.gpu_fraction", kUnsupported, "", "", "", nullptr},
      {"memory.host_pinned", kUnsupported, "", "", "", nullptr},
      {"timeouts", kMap, "map", "", "deadlines of a start's phases, and of silence", nullptr},
      {"timeouts.launch", kScalar, "duration", "60s", "until all ranks stand in MPI",
       [](KeyTarget& t, Values v) { return PutPositive(v[0], &t.settings->timeouts.launch); }},
      {"timeouts.connect", kScalar, "duration", "45s", "until all ranks have control connections",
       [](KeyTarget& t, Values v) { return PutPositive(v[0], &t.settings->timeouts.connect); }},
      {"timeouts.load", kScalar, "duration", "15min", "until all weights are in memory",
       [](KeyTarget& t, Values v) { return PutPositive(v[0], &t.settings->timeouts.load); }},
      {"timeouts.warmup", kScalar, "duration", "2min", "until the first token came out",
       [](KeyTarget& t, Values v) { return PutPositive(v[0], &t.settings->timeouts.warmup); }},
      {"timeouts.heartbeat", kMap, "map", "", "signs of life between ranks", nullptr},
      {"timeouts.heartbeat.period", kScalar, "duration", "250ms", "between two of them",
       [](KeyTarget& t, Values v) {
         return PutPositive(v[0], &t.settings->timeouts.heartbeat.period);
       }},
      {"timeouts.heartbeat.suspect", kScalar, "duration", "1s", "silence that is logged",
       [](KeyTarget& t, Values v) {
         return PutPositive(v[0], &t.settings->timeouts.heartbeat.suspect);
       }},
      {"timeouts.heartbeat.dead", kScalar, "duration", "2500ms", "silence that ends the replica",
       [](KeyTarget& t, Values v) {
         return PutPositive(v[0], &t.settings->timeouts.heartbeat.dead);
       }},
      {"timeouts.stall", kScalar, "duration, or `auto`", "auto",
       "a step without end; auto: 10 s or 50 median steps, whichever is more",
       [](KeyTarget& t, Values v) {
         t.settings->timeouts.stall.reset();
         return v[0] == "auto" ? absl::OkStatus()
                               : PutPositive(v[0], &t.settings->timeouts.stall.emplace());
       }},
      {"drain", kMap, "map", "", "an orderly end", nullptr},
      {"drain.announce", kScalar, "duration", "2s", "between not serving and refusing",
       [](KeyTarget& t, Values v) {
         return Put(ParseDuration(v[0]), &t.settings->drain.announce);
       }},
      {"drain.deadline", kScalar, "duration", "120s", "until streams that still run are ended",
       [](KeyTarget& t, Values v) { return PutPositive(v[0], &t.settings->drain.deadline); }},
      {"drain.migrate", kUnsupported, "", "", "", nullptr},
      {"restart", kMap, "map", "", "what happens when the replica ends by itself", nullptr},
      {"restart.backoff", KeyShape::kList, "[shortest, longest]", "[1s, 60s]",
       "wait before a new start; doubles with each failure",
       [](KeyTarget& t, Values v) { return PutBackoff(v, &t.settings->restart); }},
      {"restart.give_up", kMap, "map", "", "when it stays down", nullptr},
      {"restart.give_up.failures", kScalar, "count", "5", "with one exit code",
       [](KeyTarget& t, Values v) {
         return Put(ParseCount(v[0], {.minimum = 1, .maximum = 1000}),
                    &t.settings->restart.failures_max);
       }},
      {"restart.give_up.within", kScalar, "duration", "10min", "in this time",
       [](KeyTarget& t, Values v) {
         return PutPositive(v[0], &t.settings->restart.failures_window);
       }},
  };
  for (ClusterKey& key : keys) {
    key.pattern = prefix + key.pattern;
  }
  return keys;
}

std::vector<ClusterKey> ReplicaKeys() {
  return {
      {"replicas", KeyShape::kNamedMaps, "map of names", "required",
       "complete copies of the model, one job each", nullptr},
      {"replicas.*", kMap, "map", "", "one replica, by its name", AddReplica},
      {"replicas.*.stages", KeyShape::kMapList, "list of maps", "required",
       "runs of layers, in their order; each on one node", nullptr},
      {"replicas.*.stages[]", kMap, "map", "", "one stage", AddStage},
      {"replicas.*.stages[].node", kScalar, "a name of `nodes`", "required", "where it runs",
       [](KeyTarget& t, Values v) { return Put(ParseText(v[0]), t.stage_node); }},
      {"replicas.*.stages[].ranks", kScalar, "1, 2, 4 or 8", "1",
       "tensor ranks; the same in all stages of a replica",
       [](KeyTarget& t, Values v) {
         const absl::Status status = OneOf(v[0], {"1", "2", "4", "8"});
         return status.ok() ? Put(ParseCount(v[0], {}), &t.stage->ranks) : status;
       }},
      {"replicas.*.stages[].cores", KeyShape::kScalarOrList, "cores", "not bound",
       "shared out over the stage's ranks, which are bound to them",
       [](KeyTarget& t, Values v) { return PutCores(v, &t.stage->cores); }},
      {"replicas.*.stages[].threads", kScalar, "count", "a rank's cores, or 1", "of each rank",
       [](KeyTarget& t, Values v) {
         return Put(ParseCount(v[0], {.minimum = 1, .maximum = kThreadsMax}), &t.stage->threads);
       }},
      {"replicas.*.stages[].layers", kScalar, "`auto`, or a run such as 0-14", "auto",
       "layers of this stage, both ends included; auto: balanced by cost",
       [](KeyTarget& t, Values v) {
         t.stage->layers.reset();
         return v[0] == "auto" ? absl::OkStatus() : Put(ParseLayers(v[0]), &t.stage->layers);
       }},
      {"replicas.*.stages[].gpus", kUnsupported, "", "", "", nullptr},
      {"replicas.*.engine", kMap, "map", "required", "the replica's own service", nullptr},
      {"replicas.*.engine.listen", kScalar, "HOST:PORT", "required",
       "on the host of the first stage; where the balancer reaches it",
       [](KeyTarget& t, Values v) { return PutAddress(v[0], &t.replica->engine_listen); }},
  };
}

}  // namespace trireme::topology

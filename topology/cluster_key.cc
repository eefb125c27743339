#include "topology/cluster_key.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "topology/cluster.h"
#include "topology/key_values.h"
#include "topology/replica_keys.h"
#include "topology/value_text.h"

namespace trireme::topology {
namespace {

constexpr int64_t kNodesMax = 1024;
constexpr size_t kBalancersMax = 16;

absl::Status PutListen(Values values, std::vector<std::string>* place) {
  for (const std::string& value : values) {
    std::string address;
    if (absl::Status status = PutAddress(value, &address); !status.ok()) {
      return status;
    }
    if (absl::Status status = CheckRoom(place->size(), kBalancersMax); !status.ok()) {
      return status;
    }
    place->push_back(address);
  }
  return absl::OkStatus();
}

absl::Status PutAdmin(absl::string_view text, std::string* place) {
  // A socket's path has 107 bytes; those of the children stand beside this one.
  constexpr size_t kPathMax = 80;
  if (text.substr(0, 6) != "unix:/" || text.size() > kPathMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text.substr(0, kPathMax), "\" is no absolute socket path of at most ",
                     kPathMax, " bytes, such as unix:/run/trireme/admin.sock"));
  }
  return Put(ParseText(text), place);
}

absl::Status AddNode(KeyTarget& target, Values values) {
  std::vector<ClusterNode>& nodes = target.draft->file.nodes;
  if (absl::Status status = CheckRoom(nodes.size(), kNodesMax); !status.ok()) {
    return status;
  }
  target.node = &nodes.emplace_back();
  target.node->host = "localhost";
  return Put(ParseName(values[0]), &target.node->name);
}

constexpr KeyShape kMap = KeyShape::kMap;
constexpr KeyShape kScalar = KeyShape::kScalar;
constexpr KeyShape kUnsupported = KeyShape::kUnsupported;

// Of the top, the model, the network and the nodes.
std::vector<ClusterKey> SiteKeys() {
  return {
      {"version", kScalar, "1", "required", "version of this format", nullptr},
      {"name", kScalar, "name", "the file's name", "of the cluster, in logs and the run folder",
       [](KeyTarget& t, Values v) { return Put(ParseName(v[0]), &t.draft->file.name); }},
      {"model", kMap, "map", "required", "the model that all replicas serve", nullptr},
      {"model.id", kScalar, "text", "the model file's name", "the name that clients use",
       [](KeyTarget& t, Values v) { return Put(ParseText(v[0]), &t.draft->file.model.id); }},
      {"model.path", kScalar, "path, or `default`", "required",
       "what `--model` takes, the same path on all nodes; `default`: what "
       "launcher/default_model.sh prints",
       [](KeyTarget& t, Values v) { return Put(ParseText(v[0]), &t.draft->file.model.path); }},
      {"model.context", kScalar, "tokens", "what the model allows", "positions of one sequence",
       [](KeyTarget& t, Values v) {
         return Put(ParseCount(v[0], {.minimum = 1}), &t.draft->file.model.context);
       }},
      {"model.kv_cache", kScalar, "`f16`, `f32`, `bf16`, `int8`, `fp8` or `int4`", "f16",
       "number format of keys and values",
       [](KeyTarget& t, Values v) {
         return PutWord(v[0], {"f16", "f32", "bf16", "int8", "fp8", "int4"},
                        &t.draft->file.model.kv_cache);
       }},
      {"model.activations", kScalar, "`auto` or `float32`", "auto",
       "float32: decoded weights times float32 activations, the slow check",
       [](KeyTarget& t, Values v) {
         return PutWord(v[0], {"auto", "float32"}, &t.draft->file.model.activations);
       }},
      {"model.bad_weights", kScalar, "`warn` or `refuse`", "warn",
       "what becomes of a file with weights that are NaN or infinite",
       [](KeyTarget& t, Values v) {
         return PutWord(v[0], {"warn", "refuse"}, &t.draft->file.model.bad_weights);
       }},
      {"model.manifest", kUnsupported, "", "", "", nullptr},
      {"model.dtype", kUnsupported, "", "", "", nullptr},
      {"model.determinism", kUnsupported, "", "", "", nullptr},
      {"network", kMap, "map", "none", "the links between nodes, for predictions", nullptr},
      {"network.bandwidth", kScalar, "rate", "not stated", "of one link, each way",
       [](KeyTarget& t, Values v) {
         return Put(ParseByteRate(v[0]), &t.draft->file.network.bytes_per_second);
       }},
      {"network.latency", kScalar, "duration", "not stated", "one way, of a small message",
       [](KeyTarget& t, Values v) {
         return Put(ParseDuration(v[0]), &t.draft->file.network.latency);
       }},
  };
}

std::vector<ClusterKey> NodeKeys() {
  return {
      {"nodes", KeyShape::kNamedMaps, "map of names", "required", "the hosts that ranks run on",
       nullptr},
      {"nodes.*", kMap, "map", "", "one node, by its name", AddNode},
      {"nodes.*.host", kScalar, "host name or address", "localhost",
       "how the launcher and other nodes reach it",
       [](KeyTarget& t, Values v) { return Put(ParseText(v[0]), &t.node->host); }},
      {"nodes.*.cores", KeyShape::kScalarOrList, "cores", "not stated", "cores for Trireme",
       [](KeyTarget& t, Values v) { return PutCores(v, &t.node->cores); }},
      {"nodes.*.memory", kScalar, "size", "not stated", "memory for Trireme",
       [](KeyTarget& t, Values v) { return Put(ParseSize(v[0]), &t.node->memory_bytes); }},
      {"nodes.*.bandwidth", kScalar, "rate", "measured, on this host",
       "memory read by all its cores together, for predictions",
       [](KeyTarget& t, Values v) {
         return Put(ParseByteRate(v[0]), &t.node->stream_bytes_per_second);
       }},
      {"nodes.*.operations", kScalar, "operation rate", "measured, on this host",
       "8-bit products by all its cores together, for predictions",
       [](KeyTarget& t, Values v) {
         return Put(ParseOperationRate(v[0]), &t.node->operations_per_second);
       }},
      {"nodes.*.gpus", kUnsupported, "", "", "", nullptr},
      {"nodes.*.gpu_type", kUnsupported, "", "", "", nullptr},
      {"nodes.*.numa", kUnsupported, "", "", "", nullptr},
  };
}

std::vector<ClusterKey> BalancerKeys() {
  return {
      {"balancer", kMap, "map", "none: clients call replicas", "in front of the replicas",
       [](KeyTarget& t, Values) {
         t.draft->file.balancer.emplace();
         return absl::OkStatus();
       }},
      {"balancer.listen", kMap, "map", "required", "where clients call", nullptr},
      {"balancer.listen.grpc", KeyShape::kScalarOrList, "HOST:PORT, or a list of them", "required",
       "one balancer process for each",
       [](KeyTarget& t, Values v) { return PutListen(v, &t.draft->file.balancer->listen); }},
      {"balancer.listen.http", kUnsupported, "", "", "", nullptr},
      {"balancer.replicas", KeyShape::kList, "list of names", "all", "replicas behind it",
       [](KeyTarget& t, Values v) { return PutTexts(v, &t.draft->balancer_replicas); }},
      {"balancer.policy", kMap, "map", "", "how a replica is picked", nullptr},
      {"balancer.policy.kind", kScalar, "`predicted-ttft`", "predicted-ttft",
       "by the predicted time to the first token",
       [](KeyTarget&, Values v) { return OneOf(v[0], {"predicted-ttft"}); }},
      {"balancer.policy.bounded_load", kScalar, "number from 1 to 10", "1.25",
       "most load of a replica for a prefix's sake, as a multiple of the mean",
       [](KeyTarget& t, Values v) {
         return Put(ParseNumber(v[0], {.minimum = 1, .maximum = 10}),
                    &t.draft->file.balancer->policy.bounded_load);
       }},
      {"balancer.policy.explore", kScalar, "number from 0 to 1", "0.01",
       "share of requests that go to a random replica",
       [](KeyTarget& t, Values v) {
         return Put(ParseNumber(v[0], {.minimum = 0, .maximum = 1}),
                    &t.draft->file.balancer->policy.explore);
       }},
      {"balancer.policy.stale", kScalar, "duration", "1s", "age at which load reports do not count",
       [](KeyTarget& t, Values v) {
         return PutPositive(v[0], &t.draft->file.balancer->policy.stale);
       }},
      {"balancer.slo", kUnsupported, "", "", "", nullptr},
      {"balancer.retry", kMap, "map", "", "when a replica fails a request", nullptr},
      {"balancer.retry.budget", kScalar, "number from 0 to 1", "0.1",
       "retries as a share of requests",
       [](KeyTarget& t, Values v) {
         return Put(ParseNumber(v[0], {.minimum = 0, .maximum = 1}),
                    &t.draft->file.balancer->retry.budget);
       }},
      {"balancer.retry.attempts", kScalar, "count", "2", "further replicas before the first token",
       [](KeyTarget& t, Values v) {
         return Put(ParseCount(v[0], {.minimum = 0, .maximum = 100}),
                    &t.draft->file.balancer->retry.attempts);
       }},
      {"balancer.retry.resumes", kScalar, "count", "3", "further replicas in mid-stream",
       [](KeyTarget& t, Values v) {
         return Put(ParseCount(v[0], {.minimum = 0, .maximum = 100}),
                    &t.draft->file.balancer->retry.resumes);
       }},
      {"balancer.limits", kMap, "map", "", "what one balancer holds", nullptr},
      {"balancer.limits.queue", kScalar, "count", "2048", "requests that wait",
       [](KeyTarget& t, Values v) {
         return Put(ParseCount(v[0], {.minimum = 0, .maximum = 1000000}),
                    &t.draft->file.balancer->limits.queue);
       }},
      {"balancer.limits.prompt_tokens", kUnsupported, "", "", "", nullptr},
      {"balancer.limits.output_tokens", kUnsupported, "", "", "", nullptr},
      {"balancer.limits.request", kUnsupported, "", "", "", nullptr},
      {"balancer.limits.n", kUnsupported, "", "", "", nullptr},
      {"balancer.limits.grammar", kUnsupported, "", "", "", nullptr},
      {"balancer.resume_grace", kScalar, "duration", "10s",
       "in which a client that lost its connection may come back",
       [](KeyTarget& t, Values v) {
         return Put(ParseDuration(v[0]), &t.draft->file.balancer->resume_grace);
       }},
  };
}

std::vector<ClusterKey> ObserveKeys() {
  return {
      {"tls", kUnsupported, "", "", "", nullptr},
      {"tenants", kUnsupported, "", "", "", nullptr},
      {"observe", kMap, "map", "", "how the fleet is watched", nullptr},
      {"observe.admin", kScalar, "unix:PATH", "in the run folder",
       "the supervisor's socket; those of its children stand beside it",
       [](KeyTarget& t, Values v) { return PutAdmin(v[0], &t.draft->file.observe.admin); }},
      {"observe.metrics", kScalar, "HOST:PORT", "none",
       "metrics of the supervisor; its children take the ports after it",
       [](KeyTarget& t, Values v) { return PutAddress(v[0], &t.draft->file.observe.metrics); }},
      {"observe.log", kMap, "map", "",
       "the supervisor's log; children write text at level info into the run folder", nullptr},
      {"observe.log.level", kScalar, "`debug`, `info`, `warning` or `error`", "info",
       "the least that is logged",
       [](KeyTarget& t, Values v) {
         return PutWord(v[0], {"debug", "info", "warning", "error"},
                        &t.draft->file.observe.log_level);
       }},
      {"observe.log.format", kScalar, "`text` or `json`", "text",
       "key=value, or a JSON object a line",
       [](KeyTarget& t, Values v) {
         return Put(ParseChoice(v[0], {"text", "json"}), &t.draft->file.observe.log_json);
       }},
      {"observe.log.content", kScalar, "`off`", "off", "prompts and answers are never logged",
       [](KeyTarget&, Values v) { return OneOf(v[0], {"off"}); }},
      {"observe.compat_metrics", kUnsupported, "", "", "", nullptr},
  };
}

std::vector<ClusterKey> AllKeys() {
  std::vector<ClusterKey> all;
  const auto add = [&all](std::vector<ClusterKey> keys) {
    all.insert(all.end(), std::make_move_iterator(keys.begin()),
               std::make_move_iterator(keys.end()));
  };
  add(SiteKeys());
  add({{"defaults", kMap, "map", "", "what replicas take, unless they say otherwise",
        [](KeyTarget& t, Values) {
          t.settings = &t.draft->defaults;
          return absl::OkStatus();
        }}});
  add(SettingKeys("defaults."));
  add(NodeKeys());
  add(ReplicaKeys());
  add(SettingKeys("replicas.*."));
  add(BalancerKeys());
  add(ObserveKeys());
  return all;
}

}  // namespace

std::string ClusterKey::parent() const {
  const absl::string_view path = pattern;
  if (path.size() > 2 && path.substr(path.size() - 2) == "[]") {
    return std::string(path.substr(0, path.size() - 2));
  }
  const size_t dot = path.rfind('.');
  return dot == absl::string_view::npos ? "" : std::string(path.substr(0, dot));
}

std::string ClusterKey::name() const {
  const size_t dot = pattern.rfind('.');
  return dot == std::string::npos ? pattern : pattern.substr(dot + 1);
}

const std::vector<ClusterKey>& ClusterKeys() {
  static const auto* const keys = new std::vector<ClusterKey>(AllKeys());
  return *keys;
}

}  // namespace trireme::topology

#include "launcher/replica_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/layer_times.h"
#include "launcher/replica_command.h"
#include "launcher/weight_parts.h"
#include "runtime/base/status_macros.h"
#include "runtime/cache/kv_format.h"
#include "runtime/device/buffer.h"
#include "topology/partition_model.h"
#include "topology/stage_balance.h"

namespace trireme::launcher {
namespace {

// What the controller and the sampler add to a step: plans out, results back, one token drawn.
constexpr double kStepSeconds = 150e-6;

// Between nodes whose link is not stated.
constexpr topology::Link kAssumedLink = {.bytes_per_second = 1.25e9, .latency_seconds = 50e-6};

std::string ReplicaPath(const topology::ClusterReplica& replica) {
  return absl::StrCat("replicas.", replica.name);
}

class Planner {
 public:
  Planner(const topology::ClusterFile& file, const weights::Checkpoint& checkpoint,
          const PlanQuestion& question)
      : file_(file),
        checkpoint_(checkpoint),
        model_(checkpoint.model_spec()),
        layers_(static_cast<int64_t>(model_.layers.size())),
        question_(question) {}

  absl::StatusOr<ClusterPlan> Plan() {
    if (file_.model.context > model_.context) {
      Report("model.context", absl::StrFormat("%d positions; the model was made for at most %d",
                                              file_.model.context, model_.context));
    }
    for (const topology::ClusterReplica& replica : file_.replicas) {
      CheckModel(replica);
    }
    if (!plan_.problems.empty()) {
      return std::move(plan_);
    }
    for (const topology::ClusterReplica& replica : file_.replicas) {
      RETURN_IF_ERROR(PlanReplica(replica));
    }
    CheckHosts();
    return std::move(plan_);
  }

 private:
  void Report(const std::string& path, std::string text) {
    plan_.problems.push_back({topology::PlaceOfKey(file_.places, path), path, std::move(text)});
  }

  // What only the model shows.
  void CheckModel(const topology::ClusterReplica& replica) {
    const std::string path = absl::StrCat(ReplicaPath(replica), ".stages");
    const int64_t heads = model_.Extents().query_heads;
    if (replica.stages[0].ranks > heads) {
      Report(path + "[0].ranks",
             absl::StrFormat("%d tensor ranks; the model has %d query heads, and "
                             "a rank needs at least one",
                             replica.stages[0].ranks, heads));
    }
    if (static_cast<int64_t>(replica.stages.size()) > layers_) {
      Report(path, absl::StrFormat("%d stages; the model has %d layers, and a stage needs at least "
                                   "one",
                                   replica.stages.size(), layers_));
    }
    const std::optional<topology::Range>& last = replica.stages.back().layers;
    if (last.has_value() && last->end != layers_) {
      Report(absl::StrFormat("%s[%d].layers", path, replica.stages.size() - 1),
             absl::StrFormat("ends with layer %d; the model has layers 0-%d", last->end - 1,
                             layers_ - 1));
    }
  }

  absl::Status PlanReplica(const topology::ClusterReplica& replica) {
    PlannedReplica planned;
    ASSIGN_OR_RETURN(weights_, WeightPartsOf(checkpoint_, replica.stages[0].ranks));
    RETURN_IF_ERROR(SetOptions(replica, &planned.options));
    std::vector<topology::StageSpeed> speeds;
    if (question_.want_speed) {
      for (size_t stage = 0; stage < replica.stages.size(); ++stage) {
        ASSIGN_OR_RETURN(topology::StageSpeed speed,
                         SpeedOf(replica, stage, &planned.speed_source));
        speeds.push_back(std::move(speed));
      }
    }
    RETURN_IF_ERROR(SetLayers(replica, speeds, &planned));
    RETURN_IF_ERROR(SetLimits(replica, &planned));
    RETURN_IF_ERROR(PlanRanks(replica, &planned));
    const int64_t sequence_tokens =
        question_.sequence_tokens > 0 ? question_.sequence_tokens : planned.options.limits.context;
    planned.capacity =
        topology::CapacityOf(planned.options.limits.blocks, kernels::kBlockTokens, sequence_tokens);
    if (question_.want_speed) {
      Predict(replica, std::move(speeds), sequence_tokens, &planned);
    }
    plan_.replicas.push_back(std::move(planned));
    return absl::OkStatus();
  }

  absl::Status SetOptions(const topology::ClusterReplica& replica, engine::RankOptions* options) {
    options->layout.tensor_ranks = replica.stages[0].ranks;
    options->layout.stages = static_cast<int>(replica.stages.size());
    ASSIGN_OR_RETURN(options->kv_format, cache::FindKvFormat(file_.model.kv_cache));
    options->activations = file_.model.activations == "float32" ? model::ActivationMode::kFloat32
                                                                : model::ActivationMode::kAuto;
    options->limits.context = static_cast<int32_t>(file_.model.context);
    ASSIGN_OR_RETURN(options->limits, engine::ResolveLimits(options->limits, model_));
    return absl::OkStatus();
  }

  absl::StatusOr<topology::StageSpeed> SpeedOf(const topology::ClusterReplica& replica,
                                               size_t stage_index, std::string* source) {
    const topology::ClusterStage& stage = replica.stages[stage_index];
    const topology::ClusterNode& node = file_.nodes[stage.node_index];
    const int threads = ThreadsOf(stage);
    const bool is_last = stage_index + 1 == replica.stages.size();
    if (node.stream_bytes_per_second.has_value() && node.operations_per_second.has_value()) {
      AddSource(source, absl::StrCat(node.name, ": stated"));
      return topology::SpeedFromStated(
          {.stream_bytes_per_second = *node.stream_bytes_per_second,
           .operations_per_second = *node.operations_per_second,
           .tensor_ranks = stage.ranks,
           .layer_bytes = weights_.mean_layer.read_bytes,
           .output_bytes = is_last ? weights_.output.read_bytes : 0,
           .layer_operations = weights_.mean_layer.operations,
           .residual_bytes = static_cast<double>(model_.model_dim) * sizeof(float)});
    }
    AddSource(source, absl::StrCat(node.name, IsThisHost(node.host)
                                                  ? ": measured"
                                                  : ": assumed to be like this host, measured"));
    const auto key = std::pair(stage.ranks, threads);
    auto measured = times_.find(key);
    if (measured == times_.end()) {
      ASSIGN_OR_RETURN(const kernels::KeyValueFormat kv_format,
                       cache::FindKvFormat(file_.model.kv_cache));
      ASSIGN_OR_RETURN(
          const LayerTimes times,
          MeasureLayerTimes(checkpoint_, {.tensor_ranks = stage.ranks,
                                          .threads = threads,
                                          .kv_format = kv_format,
                                          .activations = file_.model.activations == "float32"
                                                             ? model::ActivationMode::kFloat32
                                                             : model::ActivationMode::kAuto}));
      measured = times_.emplace(key, times).first;
    }
    const LayerTimes& times = measured->second;
    topology::StageSpeed speed;
    speed.decode_layer_seconds = times.decode_layer;
    speed.output_seconds = is_last ? times.output : 0;
    speed.prefill_layer_seconds = times.prefill_layer;
    speed.stream_bytes_per_second = times.stream_bytes_per_second;
    return speed;
  }

  static void AddSource(std::string* source, const std::string& text) {
    if (!absl::StrContains(*source, text)) {
      absl::StrAppend(source, source->empty() ? "" : "; ", text);
    }
  }

  std::optional<int64_t> MemoryOf(const topology::ClusterNode& node) const {
    if (node.memory_bytes.has_value()) {
      return node.memory_bytes;
    }
    return IsThisHost(node.host) ? std::optional<int64_t>(device::AvailableMemoryBytes())
                                 : std::nullopt;
  }

  // As the file says, else by the bytes that each stage reads for a token: the same cut at every
  // start. Measured times may know better, and are told.
  absl::Status SetLayers(const topology::ClusterReplica& replica,
                         const std::vector<topology::StageSpeed>& speeds, PlannedReplica* planned) {
    std::vector<int64_t>& counts = planned->options.layout.stage_layers;
    if (replica.stages[0].layers.has_value()) {
      for (const topology::ClusterStage& stage : replica.stages) {
        counts.push_back(stage.layers->size());
      }
    } else {
      ASSIGN_OR_RETURN(counts, Cut(replica, planned->options, ByBytes(replica)));
    }
    if (!speeds.empty()) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> measured, Cut(replica, planned->options, speeds));
      planned->faster_stage_layers = measured == counts ? std::vector<int64_t>() : measured;
    }
    return absl::OkStatus();
  }

  // Speeds in which only bytes and stated bandwidths count; where a node states none, all are
  // alike.
  std::vector<topology::StageSpeed> ByBytes(const topology::ClusterReplica& replica) const {
    const bool all_stated = std::all_of(
        replica.stages.begin(), replica.stages.end(), [this](const topology::ClusterStage& stage) {
          return file_.nodes[stage.node_index].stream_bytes_per_second.has_value();
        });
    std::vector<topology::StageSpeed> speeds;
    for (const topology::ClusterStage& stage : replica.stages) {
      const double rate = all_stated ? *file_.nodes[stage.node_index].stream_bytes_per_second : 1e9;
      speeds.push_back({.decode_layer_seconds = weights_.mean_layer.read_bytes / rate});
      speeds.back().output_seconds =
          speeds.size() == replica.stages.size() ? weights_.output.read_bytes / rate : 0;
    }
    return speeds;
  }

  absl::StatusOr<std::vector<int64_t>> Cut(const topology::ClusterReplica& replica,
                                           const engine::RankOptions& options,
                                           const std::vector<topology::StageSpeed>& speeds) const {
    std::vector<topology::StageCost> costs(speeds.size());
    for (size_t stage = 0; stage < speeds.size(); ++stage) {
      topology::StageCost& cost = costs[stage];
      for (int64_t layer = 0; layer < layers_; ++layer) {
        cost.layer_seconds.push_back(speeds[stage].decode_layer_seconds * LayerUnits(layer));
        cost.layer_bytes.push_back(static_cast<int64_t>(weights_.layers[layer].bytes) +
                                   LayerKvBytes(replica, options));
      }
      cost.fixed_seconds = speeds[stage].output_seconds;
      cost.fixed_bytes =
          static_cast<int64_t>(stage + 1 == speeds.size() ? weights_.output.bytes : 0) +
          replica.settings.kv_bytes.value_or(0) * replica.stages[stage].ranks;
      cost.memory_bytes = MemoryOf(file_.nodes[replica.stages[stage].node_index]);
    }
    absl::StatusOr<std::vector<int64_t>> counts = topology::BalanceStages(costs);
    if (absl::IsResourceExhausted(counts.status())) {
      for (topology::StageCost& cost : costs) {
        cost.memory_bytes.reset();  // CheckHosts says which host is too small, and what would fit
      }
      counts = topology::BalanceStages(costs);
    }
    return counts;
  }

  // Of one layer on all its tensor ranks; with memory.kv it is the rank's that counts instead.
  int64_t LayerKvBytes(const topology::ClusterReplica& replica,
                       const engine::RankOptions& options) const {
    if (replica.settings.kv_bytes.has_value()) {
      return 0;
    }
    return cache::KvLayerBytes({.format = options.kv_format,
                                .layers = 1,
                                .key_value_heads = model_.layers[0].attention.key_value_heads,
                                .head_dim = model_.layers[0].attention.head_dim,
                                .blocks = options.limits.blocks});
  }

  // KV blocks from memory.kv, or as many as the default.
  absl::Status SetLimits(const topology::ClusterReplica& replica, PlannedReplica* planned) {
    engine::RankOptions& options = planned->options;
    options.limits.logit_rows = std::min(options.limits.tokens, options.limits.sequences);
    if (!replica.settings.kv_bytes.has_value()) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const topology::Partition partition,
                     topology::PartitionModel(model_.Extents(), options.layout));
    int64_t blocks = INT32_MAX / kernels::kBlockTokens;
    for (const topology::RankPart& part : partition.parts) {
      blocks = std::min(
          blocks, topology::BlocksThatFit(*replica.settings.kv_bytes, BlockBytes(options, part)));
    }
    options.limits.blocks = static_cast<int32_t>(blocks);
    if (blocks * kernels::kBlockTokens < options.limits.context) {
      const std::string own = ReplicaPath(replica) + ".memory.kv";
      Report(file_.places.count(own) > 0 ? own : "defaults.memory.kv",
             absl::StrFormat("holds %d tokens, less than one sequence of the context, %d; give "
                             "more, or a shorter model.context",
                             blocks * kernels::kBlockTokens, options.limits.context));
      options.limits.blocks = std::max(options.limits.blocks, 1);
    }
    return absl::OkStatus();
  }

  int64_t BlockBytes(const engine::RankOptions& options, const topology::RankPart& part) const {
    return cache::KvCacheBytes({.format = options.kv_format,
                                .layers = part.layers.size(),
                                .key_value_heads = part.key_value_heads.size(),
                                .head_dim = model_.layers[0].attention.head_dim,
                                .blocks = 1});
  }

  absl::Status PlanRanks(const topology::ClusterReplica& replica, PlannedReplica* planned) {
    for (int rank = 0; rank < planned->options.layout.ranks(); ++rank) {
      engine::RankOptions options = planned->options;
      const int stage_index = rank / options.layout.tensor_ranks;
      const topology::ClusterStage& stage = replica.stages[stage_index];
      options.threads = ThreadsOf(stage);
      ASSIGN_OR_RETURN(const std::unique_ptr<engine::Rank> whole,
                       engine::Rank::Plan(options, checkpoint_, rank));
      const topology::RankPart& part = whole->part();
      PlannedRank row = {.stage = stage_index,
                         .tensor_rank = part.tensor_rank,
                         .node_index = stage.node_index,
                         .cores = CoresOfRank(stage, part.tensor_rank),
                         .threads = options.threads,
                         .layers = part.layers,
                         .bytes = whole->bytes(),
                         .kv_block_bytes = BlockBytes(options, part)};
      row.decode_bytes = whole->work().decode_bytes;
      planned->ranks.push_back(std::move(row));
    }
    return absl::OkStatus();
  }

  void Predict(const topology::ClusterReplica& replica, std::vector<topology::StageSpeed> speeds,
               int64_t sequence_tokens, PlannedReplica* planned) {
    for (const PlannedRank& rank : planned->ranks) {
      topology::StageSpeed& speed = speeds[rank.stage];
      speed.decode_bytes += static_cast<double>(rank.decode_bytes);
      speed.kv_bytes_per_token += static_cast<double>(rank.kv_block_bytes) / kernels::kBlockTokens;
      if (rank.tensor_rank == 0) {
        for (int64_t layer = rank.layers.begin; layer < rank.layers.end; ++layer) {
          speed.layer_units += LayerUnits(layer);
        }
      }
    }
    topology::SpeedQuestion question;
    question.stages = std::move(speeds);
    question.link = LinkOf(replica);
    question.residual_bytes = static_cast<double>(model_.model_dim) * sizeof(float);
    question.step_seconds = kStepSeconds;
    question.sequences =
        std::clamp<int64_t>(planned->capacity.sequences, 1, planned->options.limits.sequences);
    question.sequence_tokens = sequence_tokens / 2;  // from their beginning to their end
    planned->speed = topology::PredictSpeed(question);
  }

  topology::Link LinkOf(const topology::ClusterReplica& replica) const {
    const std::string& first = file_.nodes[replica.stages[0].node_index].host;
    const bool is_one_host = std::all_of(replica.stages.begin(), replica.stages.end(),
                                         [&](const topology::ClusterStage& stage) {
                                           return file_.nodes[stage.node_index].host == first;
                                         });
    if (is_one_host) {
      return topology::kSharedMemoryLink;
    }
    return {
        .bytes_per_second = file_.network.bytes_per_second.value_or(kAssumedLink.bytes_per_second),
        .latency_seconds = file_.network.latency.has_value()
                               ? absl::ToDoubleSeconds(*file_.network.latency)
                               : kAssumedLink.latency_seconds};
  }

  // The ranks of all replicas on one host, against its memory.
  void CheckHosts() {
    std::map<std::string, topology::HostDemand> demands;
    for (size_t replica = 0; replica < plan_.replicas.size(); ++replica) {
      for (const PlannedRank& rank : plan_.replicas[replica].ranks) {
        const topology::ClusterNode& node = file_.nodes[rank.node_index];
        const std::optional<int64_t> memory = MemoryOf(node);
        if (!memory.has_value()) {
          continue;  // `trireme check` asks the host
        }
        topology::HostDemand& demand = demands[node.host];
        demand.host = node.host;
        demand.available_bytes = *memory;
        demand.weight_bytes += rank.bytes.weights;
        demand.kv_bytes += rank.bytes.kv_cache;
        demand.workspace_bytes += rank.bytes.workspace;
        demand.kv_bytes_per_token += rank.kv_block_bytes / kernels::kBlockTokens;
        demand.bits_per_weight = BitsPerLayerWeight();
      }
    }
    for (const auto& [host, demand] : demands) {
      if (std::string text = topology::DescribeMisfit(demand); !text.empty()) {
        plan_.misfits.push_back(std::move(text));
      }
    }
  }

  double BitsPerLayerWeight() const {
    return weights_.mean_layer.bytes * 8 / weights_.mean_layer.values;
  }

  // How long a layer takes beside the mean one.
  double LayerUnits(int64_t layer) const {
    return weights_.layers[layer].read_bytes / weights_.mean_layer.read_bytes;
  }

  const topology::ClusterFile& file_;
  const weights::Checkpoint& checkpoint_;
  const spec::ModelSpec& model_;
  const int64_t layers_;
  const PlanQuestion question_;
  WeightParts weights_;                              // of the replica being planned
  std::map<std::pair<int, int>, LayerTimes> times_;  // by tensor ranks and threads
  ClusterPlan plan_;
};

}  // namespace

bool IsThisHost(const std::string& host) {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return IsLoopbackHost(host) || host == name;
}

absl::StatusOr<ClusterPlan> PlanCluster(const topology::ClusterFile& file,
                                        const weights::Checkpoint& checkpoint,
                                        const PlanQuestion& question) {
  return Planner(file, checkpoint, question).Plan();
}

}  // namespace trireme::launcher

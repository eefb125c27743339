#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/fleet_plan.h"
#include "launcher/opened_fleet.h"
#include "launcher/replica_plan.h"
#include "launcher/run_folder.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(int64_t, sequence_tokens, 0,
          "tokens of the sequences that capacity is counted in, as in --sequence-tokens 1300; 0: "
          "the context");
ABSL_FLAG(bool, measure, true,
          "measure this host's speed where the file states none; --nomeasure predicts no speed");
ABSL_DECLARE_FLAG(bool, json);

namespace trireme::launcher {
namespace {

constexpr double kMebibyte = 1 << 20;

std::string Cores(const std::vector<int>& cores) {
  return cores.empty() ? "any" : absl::StrJoin(cores, ",");
}

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f", static_cast<double>(bytes) / kMebibyte);
}

void PrintRanks(const topology::ClusterFile& file, const ClusterPlan& plan) {
  absl::PrintF("%-10s %4s %5s %6s %-10s %-8s %7s %-8s %11s %11s %11s\n", "replica", "rank", "stage",
               "tensor", "node", "cores", "threads", "layers", "weights MiB", "KV MiB", "work MiB");
  for (size_t replica = 0; replica < plan.replicas.size(); ++replica) {
    int number = 0;
    for (const PlannedRank& rank : plan.replicas[replica].ranks) {
      absl::PrintF("%-10s %4d %5d %6d %-10s %-8s %7d %-8s %11s %11s %11s\n",
                   file.replicas[replica].name, number++, rank.stage, rank.tensor_rank,
                   file.nodes[rank.node_index].name, Cores(rank.cores), rank.threads,
                   absl::StrCat(rank.layers.begin, "-", rank.layers.end - 1),
                   Mebibytes(rank.bytes.weights), Mebibytes(rank.bytes.kv_cache),
                   Mebibytes(rank.bytes.workspace));
    }
  }
}

int64_t SequenceTokens(const PlannedReplica& replica) {
  const int64_t stated = absl::GetFlag(FLAGS_sequence_tokens);
  return stated > 0 ? stated : replica.options.limits.context;
}

void PrintReplica(const std::string& name, const PlannedReplica& replica) {
  absl::PrintF("\n%s: KV for %d tokens, %d sequences of %d tokens (at most %d run at once)\n", name,
               replica.capacity.tokens, replica.capacity.sequences, SequenceTokens(replica),
               replica.options.limits.sequences);
  if (replica.speed_source.empty()) {
    return;
  }
  absl::PrintF(
      "  predicted: decode %.1f tokens/s for one sequence, %.1f for all; prefill %.0f tokens/s\n"
      "  limited by %s\n  speeds: %s\n",
      replica.speed.decode_tokens_per_second, replica.speed.throughput_tokens_per_second,
      replica.speed.prefill_tokens_per_second, replica.speed.decode_limit, replica.speed_source);
  if (!replica.faster_stage_layers.empty()) {
    absl::PrintF(
        "  by these speeds a cut of %s layers would be faster; layers: in the file has it\n",
        absl::StrJoin(replica.faster_stage_layers, ","));
  }
}

nlohmann::ordered_json RankJson(const topology::ClusterFile& file, const PlannedRank& rank) {
  return {{"stage", rank.stage},
          {"tensor_rank", rank.tensor_rank},
          {"node", file.nodes[rank.node_index].name},
          {"host", file.nodes[rank.node_index].host},
          {"cores", rank.cores},
          {"threads", rank.threads},
          {"first_layer", rank.layers.begin},
          {"layers", rank.layers.size()},
          {"weight_bytes", rank.bytes.weights},
          {"kv_bytes", rank.bytes.kv_cache},
          {"workspace_bytes", rank.bytes.workspace},
          {"decode_bytes_per_token", rank.decode_bytes}};
}

std::vector<std::string> CommandLines(const std::string& path, const topology::ClusterFile& file,
                                      const ClusterPlan& plan) {
  const std::string folder = RunFolderOf(file);
  return FleetCommandLines(file,
                           {.program = OwnPath(),
                            .run_folder = folder,
                            .topology_path = AbsolutePath(path),
                            .cuts = CutsOf(plan)},
                           LastEpochIn(folder));
}

nlohmann::ordered_json PlanJson(const std::string& path, const topology::ClusterFile& file,
                                const ClusterPlan& plan) {
  nlohmann::ordered_json json = {{"name", file.name},
                                 {"model", file.model.path},
                                 {"misfits", plan.misfits},
                                 {"replicas", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < plan.replicas.size(); ++i) {
    const PlannedReplica& replica = plan.replicas[i];
    nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
    for (const PlannedRank& rank : replica.ranks) {
      ranks.push_back(RankJson(file, rank));
    }
    nlohmann::ordered_json planned = {{"name", file.replicas[i].name},
                                      {"stage_layers", replica.options.layout.stage_layers},
                                      {"ranks", std::move(ranks)},
                                      {"context", replica.options.limits.context},
                                      {"kv_tokens", replica.capacity.tokens},
                                      {"sequence_tokens", SequenceTokens(replica)},
                                      {"sequences", replica.capacity.sequences}};
    if (!replica.speed_source.empty()) {
      planned["decode_tokens_per_second"] = replica.speed.decode_tokens_per_second;
      planned["throughput_tokens_per_second"] = replica.speed.throughput_tokens_per_second;
      planned["prefill_tokens_per_second"] = replica.speed.prefill_tokens_per_second;
      planned["decode_limit"] = replica.speed.decode_limit;
      planned["speed_source"] = replica.speed_source;
      planned["faster_stage_layers"] = replica.faster_stage_layers;
    }
    json["replicas"].push_back(std::move(planned));
  }
  json["commands"] = CommandLines(path, file, plan);
  return json;
}

ExitCode RunPlan(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Fail(ExitCode::kUsage, absl::InvalidArgumentError(
                                      "name a topology file, as in trireme plan cluster.yaml"));
  }
  if (absl::GetFlag(FLAGS_sequence_tokens) < 0) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError("--sequence-tokens must not be negative"));
  }
  OpenedFleet fleet;
  const ExitCode opened = OpenFleet(words[0],
                                    {.sequence_tokens = absl::GetFlag(FLAGS_sequence_tokens),
                                     .want_speed = absl::GetFlag(FLAGS_measure)},
                                    &fleet);
  if (opened != ExitCode::kOk) {
    return opened;
  }
  if (absl::GetFlag(FLAGS_json)) {
    absl::PrintF("%s\n", PlanJson(words[0], fleet.file, fleet.plan).dump(2));
  } else {
    PrintRanks(fleet.file, fleet.plan);
    for (size_t i = 0; i < fleet.plan.replicas.size(); ++i) {
      PrintReplica(fleet.file.replicas[i].name, fleet.plan.replicas[i]);
    }
    absl::PrintF("\ntrireme up %s would now run:\n", words[0]);
    for (const std::string& line : CommandLines(words[0], fleet.file, fleet.plan)) {
      absl::PrintF("%s\n", line);
    }
  }
  return ReportMisfits(fleet.plan);
}

}  // namespace

Subcommand PlanSubcommand() {
  return {.name = "plan",
          .summary = "What a topology file means: ranks, memory, capacity and predicted speed",
          .synopsis = "FILE [--sequence-tokens N] [--nomeasure] [--json]",
          .example = "trireme plan deploy/topologies/laptop.yaml --sequence-tokens 1300",
          .flags = {"sequence_tokens", "measure", "json"},
          .words_max = 1,
          .run = RunPlan};
}

}  // namespace trireme::launcher

#include "launcher/fleet_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace trireme::launcher {
namespace {

constexpr int kBarWidth = 30;
constexpr double kMebibyte = 1 << 20;

std::string Seconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

std::string Title(const FleetView& view) {
  return absl::StrFormat("fleet %s, up %s%s\n", view.name, Seconds(view.uptime),
                         view.is_stopping ? ", stopping" : "");
}

std::string ProgressBar(int percent) {
  const int filled = std::clamp(percent, 0, 100) * kBarWidth / 100;
  return absl::StrCat("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "]");
}

std::string StateText(const ChildView& child) {
  return child.state == "starting" ? absl::StrCat(child.state, ": ", child.phase) : child.state;
}

// Its phase only while the start lasts.
std::string RankLine(const RankView& rank, size_t index, bool is_starting) {
  if (rank.host.empty()) {
    return absl::StrFormat("    rank %d  has not started\n", index);
  }
  std::string line =
      absl::StrFormat("    rank %d  %-16s %-8s", index, absl::StrCat(rank.host, ":", rank.process),
                      is_starting ? rank.phase : "");
  if (is_starting && rank.phase == "load") {
    absl::StrAppendFormat(&line, " %s %3d %% of %.1f MiB", ProgressBar(rank.loaded_percent),
                          rank.loaded_percent, static_cast<double>(rank.weight_bytes) / kMebibyte);
  }
  return line + "\n";
}

bool IsUp(const ChildView& child) { return child.state == "serving" || child.state == "draining"; }

std::string LoadText(const LoadView& load) {
  const int64_t used = load.kv_blocks_total - load.kv_blocks_free;
  const int64_t percent = load.kv_blocks_total > 0 ? used * 100 / load.kv_blocks_total : 0;
  std::string text =
      absl::StrFormat("%9.1f %9.1f %7d %7d %9d %5d %% %8.2f %8.2f", load.decode_tokens_per_second,
                      load.prefill_tokens_per_second, load.running_sequences, load.waiting_requests,
                      load.queued_tokens, percent, Milliseconds(load.step_time_p50),
                      Milliseconds(load.step_time_p99));
  if (load.latency_streams > 0) {
    absl::StrAppendFormat(&text, " %9.1f %8.1f %9.2f %8.2f", Milliseconds(load.first_token_p50),
                          Milliseconds(load.first_token_p99), Milliseconds(load.token_p50),
                          Milliseconds(load.token_p99));
  }
  return text;
}

nlohmann::json RankJson(const RankView& rank) {
  return {{"host", rank.host},
          {"process", rank.process},
          {"phase", rank.phase},
          {"loaded_percent", rank.loaded_percent},
          {"weight_bytes", rank.weight_bytes}};
}

nlohmann::json LoadJson(const LoadView& load) {
  return {{"running_sequences", load.running_sequences},
          {"waiting_requests", load.waiting_requests},
          {"queued_tokens", load.queued_tokens},
          {"kv_blocks_total", load.kv_blocks_total},
          {"kv_blocks_free", load.kv_blocks_free},
          {"step", load.step},
          {"prefill_tokens_per_second", load.prefill_tokens_per_second},
          {"decode_tokens_per_second", load.decode_tokens_per_second},
          {"step_time_ms_p50", Milliseconds(load.step_time_p50)},
          {"step_time_ms_p99", Milliseconds(load.step_time_p99)},
          {"latency_streams", load.latency_streams},
          {"first_token_ms_p50", Milliseconds(load.first_token_p50)},
          {"first_token_ms_p99", Milliseconds(load.first_token_p99)},
          {"token_ms_p50", Milliseconds(load.token_p50)},
          {"token_ms_p99", Milliseconds(load.token_p99)}};
}

}  // namespace

std::string FleetTable(const FleetView& view) {
  std::string text = Title(view);
  absl::StrAppendFormat(&text, "  %-12s %-9s %-18s %6s %8s %9s  %s\n", "NAME", "KIND", "STATE",
                        "EPOCH", "RESTARTS", "FOR", "ADDRESS");
  for (const ChildView& child : view.children) {
    absl::StrAppendFormat(&text, "  %-12s %-9s %-18s %6d %8d %9s  %s\n", child.name, child.kind,
                          StateText(child), child.epoch, child.restarts, Seconds(child.in_state),
                          child.address);
    if (child.state == "starting") {
      for (size_t rank = 0; rank < child.ranks.size(); ++rank) {
        text += RankLine(child.ranks[rank], rank, /*is_starting=*/true);
      }
    }
    if (!IsUp(child) && child.exit_code.has_value() && *child.exit_code != 0) {
      absl::StrAppendFormat(&text, "    last end: code %d %s\n", *child.exit_code, child.reason);
    }
  }
  return text;
}

std::string FleetLoadTable(const FleetView& view) {
  std::string text = Title(view);
  absl::StrAppendFormat(&text, "  %-12s %-18s %9s %9s %7s %7s %9s %7s %8s %8s %9s %8s %9s %8s\n",
                        "NAME", "STATE", "DECODE/s", "PREFILL/s", "RUNNING", "WAITING", "QUEUED",
                        "KV", "STEP p50", "p99 ms", "FIRST p50", "p99 ms", "TOKEN p50", "p99 ms");
  for (const ChildView& child : view.children) {
    absl::StrAppendFormat(&text, "  %-12s %-18s %s\n", child.name, StateText(child),
                          child.load.has_value() ? LoadText(*child.load) : "");
    for (size_t rank = 0; rank < child.ranks.size() && child.kind == "replica"; ++rank) {
      text += RankLine(child.ranks[rank], rank, child.state == "starting");
    }
  }
  return text;
}

std::string FleetJson(const FleetView& view) {
  nlohmann::json children = nlohmann::json::array();
  for (const ChildView& child : view.children) {
    nlohmann::json object = {{"name", child.name},
                             {"kind", child.kind},
                             {"state", child.state},
                             {"phase", child.phase},
                             {"epoch", child.epoch},
                             {"restarts", child.restarts},
                             {"reason", child.reason},
                             {"address", child.address},
                             {"in_state_seconds", absl::ToDoubleSeconds(child.in_state)},
                             {"ranks", nlohmann::json::array()}};
    if (child.exit_code.has_value()) {
      object["exit_code"] = *child.exit_code;
    }
    for (const RankView& rank : child.ranks) {
      object["ranks"].push_back(RankJson(rank));
    }
    if (child.load.has_value()) {
      object["load"] = LoadJson(*child.load);
    }
    children.push_back(std::move(object));
  }
  const nlohmann::json fleet = {{"name", view.name},
                                {"uptime_seconds", absl::ToDoubleSeconds(view.uptime)},
                                {"stopping", view.is_stopping},
                                {"children", std::move(children)}};
  return fleet.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace trireme::launcher

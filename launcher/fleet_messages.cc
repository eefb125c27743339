#include "launcher/fleet_messages.h"

#include "absl/time/time.h"
#include "fleet.pb.h"

namespace trireme::launcher {
namespace {

void SetDuration(absl::Duration duration, google::protobuf::Duration* out) {
  absl::Duration rest;
  out->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  out->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

void SetRank(int index, const RankView& rank, v1::FleetRank* out) {
  out->set_rank(index);
  out->set_host(rank.host);
  out->set_process_id(rank.process);
  out->set_phase(rank.phase);
  out->set_loaded_percent(rank.loaded_percent);
  out->set_weight_bytes(rank.weight_bytes);
}

void SetLoad(const LoadView& load, v1::FleetLoad* out) {
  out->set_running_sequences(load.running_sequences);
  out->set_waiting_requests(load.waiting_requests);
  out->set_queued_tokens(load.queued_tokens);
  out->set_kv_blocks_total(load.kv_blocks_total);
  out->set_kv_blocks_free(load.kv_blocks_free);
  out->set_step(load.step);
  out->set_prefill_tokens_per_second(load.prefill_tokens_per_second);
  out->set_decode_tokens_per_second(load.decode_tokens_per_second);
  SetDuration(load.step_time_p50, out->mutable_step_time_p50());
  SetDuration(load.step_time_p99, out->mutable_step_time_p99());
  v1::RequestLatency* latency = out->mutable_request_latency();
  latency->set_streams(load.latency_streams);
  SetDuration(load.first_token_p50, latency->mutable_first_token_p50());
  SetDuration(load.first_token_p99, latency->mutable_first_token_p99());
  SetDuration(load.token_p50, latency->mutable_token_p50());
  SetDuration(load.token_p99, latency->mutable_token_p99());
}

LoadView LoadOf(const v1::FleetLoad& load) {
  const v1::RequestLatency& latency = load.request_latency();
  return {.running_sequences = load.running_sequences(),
          .waiting_requests = load.waiting_requests(),
          .queued_tokens = load.queued_tokens(),
          .kv_blocks_total = load.kv_blocks_total(),
          .kv_blocks_free = load.kv_blocks_free(),
          .step = load.step(),
          .prefill_tokens_per_second = load.prefill_tokens_per_second(),
          .decode_tokens_per_second = load.decode_tokens_per_second(),
          .step_time_p50 = FromProto(load.step_time_p50()),
          .step_time_p99 = FromProto(load.step_time_p99()),
          .latency_streams = latency.streams(),
          .first_token_p50 = FromProto(latency.first_token_p50()),
          .first_token_p99 = FromProto(latency.first_token_p99()),
          .token_p50 = FromProto(latency.token_p50()),
          .token_p99 = FromProto(latency.token_p99())};
}

ChildView ChildOf(const v1::FleetChild& child) {
  ChildView view = {.name = child.name(),
                    .kind = child.kind(),
                    .state = child.state(),
                    .phase = child.phase(),
                    .epoch = child.epoch(),
                    .restarts = child.restarts(),
                    .reason = child.reason(),
                    .address = child.address(),
                    .in_state = FromProto(child.in_state())};
  if (child.has_exit_code()) {
    view.exit_code = child.exit_code();
  }
  for (const v1::FleetRank& rank : child.ranks()) {
    view.ranks.push_back({.host = rank.host(),
                          .process = rank.process_id(),
                          .phase = rank.phase(),
                          .loaded_percent = rank.loaded_percent(),
                          .weight_bytes = rank.weight_bytes()});
  }
  if (child.has_load()) {
    view.load = LoadOf(child.load());
  }
  return view;
}

}  // namespace

void SetFleetStatus(const FleetView& view, v1::FleetStatus* out) {
  out->set_name(view.name);
  SetDuration(view.uptime, out->mutable_uptime());
  out->set_stopping(view.is_stopping);
  for (const ChildView& child : view.children) {
    v1::FleetChild* const message = out->add_children();
    message->set_name(child.name);
    message->set_kind(child.kind);
    message->set_state(child.state);
    message->set_phase(child.phase);
    message->set_epoch(child.epoch);
    message->set_restarts(child.restarts);
    if (child.exit_code.has_value()) {
      message->set_exit_code(*child.exit_code);
    }
    message->set_reason(child.reason);
    message->set_address(child.address);
    SetDuration(child.in_state, message->mutable_in_state());
    for (size_t rank = 0; rank < child.ranks.size(); ++rank) {
      SetRank(static_cast<int>(rank), child.ranks[rank], message->add_ranks());
    }
    if (child.load.has_value()) {
      SetLoad(*child.load, message->mutable_load());
    }
  }
}

FleetView FleetViewOf(const v1::FleetStatus& status) {
  FleetView view = {.name = status.name(),
                    .uptime = FromProto(status.uptime()),
                    .is_stopping = status.stopping()};
  for (const v1::FleetChild& child : status.children()) {
    view.children.push_back(ChildOf(child));
  }
  return view;
}

}  // namespace trireme::launcher

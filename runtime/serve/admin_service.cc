#include "runtime/serve/admin_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "admin.grpc.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/grpc_status.h"
#include "runtime/serve/unary_call.h"
#include "runtime/serve/violations.h"
#include "runtime/serve/wire_values.h"

namespace trireme::serve {
namespace {

constexpr int64_t kRequestBytesMax = int64_t{1} << 20;

using RawAdmin = v1::Admin::WithRawCallbackMethod_GetStatus<
    v1::Admin::WithRawCallbackMethod_Drain<v1::Admin::WithRawCallbackMethod_GetRequest<
        v1::Admin::WithRawCallbackMethod_Reload<v1::Admin::Service>>>>;

void SetTrace(const RequestRecord& record, v1::RequestTrace* out) {
  out->set_id(record.id);
  out->set_outcome(OutcomeOf(record.status));
  out->set_detail(std::string(record.status.message()));
  out->set_finish(record.finish);
  out->set_choices(record.choices);
  out->mutable_usage()->set_prompt_tokens(record.usage.prompt_tokens);
  out->mutable_usage()->set_cached_tokens(record.usage.cached_tokens);
  out->mutable_usage()->set_generated_tokens(record.usage.generated_tokens);
  out->mutable_usage()->set_recomputed_tokens(record.usage.recomputed_tokens);
  SetDuration(record.queue, out->mutable_queue());
  const absl::Duration first = record.first_token.value_or(record.queue);
  SetDuration(first - record.queue, out->mutable_prefill());
  SetDuration(record.first_token.has_value() ? record.total - first : absl::ZeroDuration(),
              out->mutable_decode());
  SetDuration(record.total, out->mutable_total());
  for (const engine::Route& route : record.routes) {
    out->set_attempts(out->attempts() + route.attempts);
    out->set_replica(route.replica);
    for (const engine::Disruption& disruption : route.disruptions) {
      v1::Disruption* move = out->add_disruptions();
      move->set_reason(disruption.reason);
      SetDuration(disruption.gap, move->mutable_gap());
      move->set_from_replica(disruption.from_replica);
      move->set_to_replica(disruption.to_replica);
    }
  }
  out->set_ended(absl::FormatTime(absl::RFC3339_full, record.ended, absl::UTCTimeZone()));
}

class AdminService final : public RawAdmin {
 public:
  AdminService(Door* door, AdminHooks hooks)
      : door_(door), hooks_(std::move(hooks)), started_(door->clock().Now()) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext*, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override {
    return StartUnaryCall(door_, request, response, RunOn::kCaller,
                          [this](absl::string_view) { return Status(); });
  }

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext*, const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override {
    return StartUnaryCall(door_, request, response, RunOn::kCaller,
                          [this](absl::string_view bytes) { return StartDrain(bytes); });
  }

  grpc::ServerUnaryReactor* Reload(grpc::CallbackServerContext*, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    return StartUnaryCall(door_, request, response, RunOn::kTaskPool,
                          [this](absl::string_view bytes) { return DoReload(bytes); });
  }

  grpc::ServerUnaryReactor* GetRequest(grpc::CallbackServerContext*,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override {
    return StartUnaryCall(door_, request, response, RunOn::kCaller,
                          [this](absl::string_view bytes) { return FindRequest(bytes); });
  }

 private:
  absl::StatusOr<std::string> Status() const {
    const StatusSnapshot snapshot = hooks_.status ? hooks_.status() : StatusSnapshot();
    const ReplicaFacade* replica = door_->replica();
    v1::ReplicaStatus status;
    SetLoadReport(replica, door_->phase(), door_->journal().latency(), status.mutable_load());
    status.set_phase(status.load().phase());
    status.set_phase_detail(snapshot.phase_detail);
    status.set_epoch(snapshot.epoch);
    status.set_version(snapshot.version);
    status.set_fault_injection(snapshot.fault_injection);
    status.set_open_streams(door_->live_calls().count());
    SetDuration(door_->clock().Now() - started_, status.mutable_uptime());
    if (replica != nullptr) {
      status.set_model(replica->model.id);
      status.set_fingerprint(replica->model.fingerprint);
    }
    for (const RankSnapshot& rank : snapshot.ranks) {
      v1::RankStatus* out = status.add_ranks();
      out->set_rank(rank.rank);
      out->set_host(rank.host);
      out->set_process_id(rank.process_id);
      out->set_step(rank.step);
      SetDuration(rank.heartbeat_age, out->mutable_heartbeat_age());
      out->set_phase(rank.phase);
      out->set_stage(rank.stage);
      out->set_tensor_rank(rank.tensor_rank);
    }
    for (const ExpertLayerSnapshot& layer : snapshot.expert_layers) {
      v1::ExpertLayer* out = status.add_expert_layers();
      out->set_layer(static_cast<int32_t>(layer.layer));
      out->mutable_tokens()->Add(layer.tokens.begin(), layer.tokens.end());
      out->set_busiest_ratio(layer.busiest_ratio);
    }
    return status.SerializeAsString();
  }

  absl::StatusOr<std::string> FindRequest(absl::string_view bytes) const {
    v1::GetRequestRequest request;
    RETURN_IF_ERROR(ParseMessage(bytes, kRequestBytesMax, &request));
    v1::GetRequestResponse response;
    for (const RequestRecord& record : door_->journal().Find(request.request_id())) {
      SetTrace(record, response.add_traces());
    }
    if (response.traces_size() == 0) {
      return WithReason(absl::NotFoundError(absl::StrCat(
                            "no request ", Quoted(request.request_id()),
                            " is remembered here: it runs, its id ", "is another, or more than ",
                            door_->options().journal_records_max, " have ended since")),
                        kReasonRequest);
    }
    return response.SerializeAsString();
  }

  absl::StatusOr<std::string> DoReload(absl::string_view bytes) const {
    v1::ReloadRequest request;
    RETURN_IF_ERROR(ParseMessage(bytes, kRequestBytesMax, &request));
    if (!hooks_.reload) {
      return WithReason(absl::UnimplementedError(
                            "this process was started without a file that it could read again"),
                        kReasonMethodNotSupported);
    }
    const absl::StatusOr<ReloadOutcome> outcome = hooks_.reload(request.dry_run());
    if (!outcome.ok()) {
      // Whatever is wrong with the file: the operator fixes it there.
      return WithReason(absl::InvalidArgumentError(outcome.status().message()),
                        kReasonBadParameter);
    }
    v1::ReloadResponse response;
    for (const std::string& change : outcome->changes) {
      response.add_changes(change);
    }
    response.set_version(outcome->version);
    return response.SerializeAsString();
  }

  absl::StatusOr<std::string> StartDrain(absl::string_view bytes) const {
    v1::DrainRequest request;
    RETURN_IF_ERROR(ParseMessage(bytes, kRequestBytesMax, &request));
    absl::Duration deadline = hooks_.drain_deadline;
    Violations violations;
    if (request.has_deadline()) {
      deadline = DurationOf(request.deadline());
      if (deadline < absl::ZeroDuration()) {
        violations.Invalid("deadline", absl::FormatDuration(deadline) + " is below 0");
      }
    }
    if (request.migrate()) violations.Unsupported("migrate");
    RETURN_IF_ERROR(violations.ToStatus());
    Log(LogLevel::kInfo,
        "drain asked for by Admin.Drain deadline=" + absl::FormatDuration(deadline));
    hooks_.drain(deadline);
    v1::DrainResponse response;
    response.set_open_streams(door_->live_calls().count());
    return response.SerializeAsString();
  }

  Door* const door_;
  const AdminHooks hooks_;
  const absl::Time started_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeAdminService(Door* door, AdminHooks hooks) {
  return std::make_shared<AdminService>(door, std::move(hooks));
}

}  // namespace trireme::serve

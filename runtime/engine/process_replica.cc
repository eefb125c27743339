#include "runtime/engine/process_replica.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/agreement.h"
#include "runtime/comm/control_link.h"
#include "runtime/comm/groups.h"
#include "runtime/comm/message.h"
#include "runtime/engine/loss_verdict.h"
#include "runtime/engine/process_pipeline.h"

namespace trireme::engine {
namespace {

constexpr int kControlLinkTag = 77;  // apart from the tags of comm/groups

// How long the failure of a transfer waits for the control link to name the culprit: longer than
// the link needs for the slowest, a rank that is silent.
constexpr absl::Duration kVerdictPatience = absl::Seconds(3);

template <typename T>
absl::StatusOr<std::vector<T>> GatherValues(comm::Communicator& control, const T& mine) {
  std::vector<T> all(control.size());
  RETURN_IF_ERROR(
      control.AllGather({reinterpret_cast<const std::byte*>(&mine), sizeof(T)},
                        {reinterpret_cast<std::byte*>(all.data()), all.size() * sizeof(T)}));
  return all;
}

RankPhase PhaseOf(uint64_t finished_step, uint64_t issued_step, bool is_waiting) {
  if (finished_step >= issued_step) {
    return RankPhase::kIdle;
  }
  return is_waiting ? RankPhase::kWaiting : RankPhase::kComputing;
}

class MpiReplica : public ProcessReplica {
 public:
  ~MpiReplica() override;

  absl::Status Start(comm::MpiWorld& world, const weights::Checkpoint& checkpoint,
                     const ReplicaOptions& options, const std::function<void()>& on_connected);
  // After a failed Start: who is to blame for `failure`. A peer that still waits hears of a loss,
  // which only rank 0 may have seen.
  absl::Status LeaveStart(const absl::Status& failure);

  int rank() const override { return groups_.rank; }
  Controller& controller() override { return *controller_; }
  const ModelText& text() const override { return text_; }
  const ReplicaInfo& info() const override { return info_; }
  std::vector<RankStatus> RankStatuses() const override;
  std::vector<model::ExpertLayerLoad> ExpertLoads() const override;
  absl::Status RunWorker() override;
  void Shutdown() override;
  void Leave(const absl::Status& reason) override;

 private:
  absl::Status PlanAndLoad(const weights::Checkpoint& checkpoint, const ReplicaOptions& options);
  absl::Status MeetAfter(const char* what, const absl::Status& mine);
  absl::Status Agree(const ReplicaOptions& options);
  absl::Status Connect(comm::MpiWorld& world, const LinkOptions& links);
  absl::Status StartController(const ReplicaOptions& options);
  absl::Status RunRank(PlanSource* plans);
  std::string Report();
  absl::Status MakePipeline(const topology::Layout& layout);
  void OnLost(const comm::PeerLost& lost);
  absl::Status Explain(const absl::Status& symptom) const {
    return verdict_.Explain(symptom, kVerdictPatience);
  }

  ReplicaLossHandler on_loss_;
  StepHook before_step_;
  ReplicaInfo info_;
  std::vector<int64_t> process_ids_;  // [ranks]
  ModelText text_;
  comm::RankGroups groups_;
  std::unique_ptr<Rank> rank_;
  std::atomic<const Rank*> loaded_rank_{nullptr};        // null while loading
  size_t report_cursor_ = 0;                             // of the link's thread
  std::atomic<model::ExpertLoad*> heard_load_{nullptr};  // rank 0: of the other stages
  std::unique_ptr<model::ExpertLoad> heard_load_owner_;
  std::atomic<uint64_t> issued_step_{0};  // rank 0
  LossVerdict verdict_;
  Mutex pipeline_mutex_;                       // a rank may be lost while this one starts
  std::unique_ptr<ProcessPipeline> pipeline_;  // rank 0; set under pipeline_mutex_
  std::unique_ptr<comm::ControlLink> link_;
  std::unique_ptr<Controller> controller_;  // rank 0
  std::thread worker_;                      // rank 0
  bool has_left_ = false;
};

// Every rank says how its part went; all return the first failure, with its rank and host.
absl::Status MpiReplica::MeetAfter(const char* what, const absl::Status& mine) {
  constexpr int64_t kReportBytesMax = int64_t{1} << 16;
  ASSIGN_OR_RETURN(const std::vector<int32_t> codes,
                   GatherValues(*groups_.control, static_cast<int32_t>(mine.code())));
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   comm::GatherMessages(*groups_.control, mine.message().substr(0, kReportBytesMax),
                                        kReportBytesMax));
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] != 0) {
      return absl::Status(static_cast<absl::StatusCode>(codes[rank]),
                          absl::StrFormat("rank=%d host=%s %s: %s", rank, groups_.places[rank].host,
                                          what, texts[rank]));
    }
  }
  return absl::OkStatus();
}

// Kernel tables may differ between ranks: all of them give the same bits.
absl::Status MpiReplica::Agree(const ReplicaOptions& options) {
  const std::string numbers = absl::StrFormat(
      "context %d, KV blocks %d, step tokens %d, sequences %d", info_.limits.context,
      info_.limits.blocks, info_.limits.tokens, info_.limits.sequences);
  const std::string formats =
      absl::StrFormat("KV format %d, activations %d", static_cast<int>(options.ranks.kv_format),
                      static_cast<int>(options.ranks.activations));
  return comm::CheckAgreement(*groups_.control, groups_.places,
                              {{"model", absl::StrFormat("%016x", info_.fingerprint)},
                               {"limits", numbers},
                               {"number formats", formats}});
}

absl::Status MpiReplica::PlanAndLoad(const weights::Checkpoint& checkpoint,
                                     const ReplicaOptions& options) {
  info_.model = checkpoint.model_spec();
  info_.fingerprint = checkpoint.FingerprintValue();
  RankOptions rank_options = options.ranks;
  ASSIGN_OR_RETURN(rank_options.limits, ResolveLimits(options.ranks.limits, info_.model));
  info_.limits = rank_options.limits;
  ASSIGN_OR_RETURN(rank_, Rank::Plan(rank_options, checkpoint, groups_.rank));
  info_.table = rank_->table().name;
  ASSIGN_OR_RETURN(text_, ReadReplicaText(checkpoint));
  return rank_->Load(checkpoint, options.progress);
}

absl::Status MpiReplica::Connect(comm::MpiWorld& world, const LinkOptions& links) {
  std::vector<int> everybody(world.size());
  for (int rank = 0; rank < world.size(); ++rank) {
    everybody[rank] = rank;
  }
  const std::unique_ptr<comm::Communicator> group =
      world.MakeGroup(std::move(everybody), kControlLinkTag);
  comm::ControlLinkOptions options;
  options.places = groups_.places;
  options.interface = links.interface;
  options.monitor = links.monitor;
  options.connect_timeout = links.connect_timeout;
  options.progress = [this] {
    const Rank* const rank = loaded_rank_.load(std::memory_order_acquire);
    const uint64_t steps =
        rank == nullptr ? 0 : rank->progress().steps_finished.load(std::memory_order_relaxed);
    return comm::Progress{.finished_step = static_cast<int64_t>(steps),
                          .is_waiting = groups_.IsWaiting()};
  };
  options.report = [this] { return Report(); };
  options.on_report = [this](int /*rank*/, absl::string_view report) {
    if (model::ExpertLoad* const load = heard_load_.load(std::memory_order_acquire)) {
      (void)load->TakePiece(report);  // one that is none says nothing
    }
  };
  options.on_lost = [this](const comm::PeerLost& lost) { OnLost(lost); };
  ASSIGN_OR_RETURN(link_, comm::ControlLink::Create(*group, std::move(options)));
  return absl::OkStatus();
}

// From here on a loss is told to the pipeline; an earlier one is the result.
absl::Status MpiReplica::MakePipeline(const topology::Layout& layout) {
  MutexLock lock(&pipeline_mutex_);
  RETURN_IF_ERROR(verdict_.Get());
  pipeline_ = std::make_unique<ProcessPipeline>(
      groups_.control.get(), layout.stages, (layout.stages - 1) * layout.tensor_ranks, info_.limits,
      ProcessPipeline::Hooks{
          .on_plan =
              [this](uint64_t step) {
                issued_step_.store(step, std::memory_order_relaxed);
                link_->SetIssuedStep(static_cast<int64_t>(step));
              },
          .explain = [this](const absl::Status& symptom) { return Explain(symptom); }});
  return absl::OkStatus();
}

absl::Status MpiReplica::StartController(const ReplicaOptions& options) {
  heard_load_owner_ = std::make_unique<model::ExpertLoad>(info_.model);
  heard_load_.store(heard_load_owner_.get(), std::memory_order_release);
  RETURN_IF_ERROR(MakePipeline(options.ranks.layout));
  ASSIGN_OR_RETURN(controller_,
                   Controller::Create({.limits = info_.limits,
                                       .queued_requests_max = options.queued_requests_max,
                                       .vocabulary = info_.model.vocabulary},
                                      pipeline_.get(), text_.tokenizer.get(), SteadyClock()));
  worker_ = std::thread([this] {
    const absl::Status status = Explain(RunRank(pipeline_->local_source()));
    if (!status.ok()) {
      pipeline_->ReportLoss(status);
    }
  });
  return absl::OkStatus();
}

absl::Status MpiReplica::Start(comm::MpiWorld& world, const weights::Checkpoint& checkpoint,
                               const ReplicaOptions& options,
                               const std::function<void()>& on_connected) {
  on_loss_ = options.on_loss;
  before_step_ = options.before_step;
  const topology::Layout& layout = options.ranks.layout;
  ASSIGN_OR_RETURN(
      groups_, comm::MakeProcessGroups(
                   world, {.layout = {.tensor_ranks = layout.tensor_ranks, .stages = layout.stages},
                           .interface = options.links.interface,
                           .timeout = options.links.connect_timeout}));
  RETURN_IF_ERROR(Connect(world, options.links));
  if (on_connected) {
    on_connected();
  }
  RETURN_IF_ERROR(MeetAfter("cannot start", PlanAndLoad(checkpoint, options)));
  loaded_rank_.store(rank_.get(), std::memory_order_release);
  RETURN_IF_ERROR(Agree(options));
  ASSIGN_OR_RETURN(info_.rank_bytes, GatherValues(*groups_.control, rank_->bytes()));
  ASSIGN_OR_RETURN(info_.rank_work, GatherValues(*groups_.control, rank_->work()));
  ASSIGN_OR_RETURN(process_ids_, GatherValues(*groups_.control, static_cast<int64_t>(::getpid())));
  info_.places = groups_.places;
  return groups_.rank == 0 ? StartController(options) : absl::OkStatus();
}

// On the link's thread: wakes everybody of this process that waits for a peer.
void MpiReplica::OnLost(const comm::PeerLost& lost) {
  const absl::Status reason = WithReason(lost.ToStatus(), kReasonRankLost);
  verdict_.Set(reason);
  groups_.Abort(reason);
  ProcessPipeline* pipeline = nullptr;
  {
    MutexLock lock(&pipeline_mutex_);
    pipeline = pipeline_.get();
  }
  if (pipeline != nullptr) {
    // For streams a stall is a lost rank like any other; DeadlineExceeded is their own deadline.
    pipeline->ReportLoss(WithReason(absl::UnavailableError(reason.message()), kReasonRankLost));
  }
  if (on_loss_) {
    on_loss_(reason);
  }
}

std::vector<RankStatus> MpiReplica::RankStatuses() const {
  std::vector<RankStatus> statuses;
  for (int rank = 0; rank < groups_.layout.ranks(); ++rank) {
    statuses.push_back({.rank = rank,
                        .stage = groups_.layout.StageOf(rank),
                        .tensor_rank = groups_.layout.TensorIndexOf(rank),
                        .host = groups_.places[rank].host,
                        .process_id = process_ids_[rank]});
  }
  const WorkerProgress& own = rank_->progress();
  statuses[groups_.rank].step = own.steps_finished.load(std::memory_order_relaxed);
  statuses[groups_.rank].phase =
      PhaseOf(own.steps_finished.load(std::memory_order_relaxed),
              issued_step_.load(std::memory_order_relaxed), groups_.IsWaiting());
  const absl::Time now = SteadyClock()->Now();
  for (const comm::PeerHealth& peer : link_->Peers()) {
    RankStatus& status = statuses[peer.rank];
    status.step = static_cast<uint64_t>(peer.finished_step);
    status.heartbeat_age = std::max(absl::ZeroDuration(), now - peer.last_heard);
    status.phase =
        peer.has_left ? RankPhase::kGone
        : peer.is_suspect
            ? RankPhase::kSilent
            : PhaseOf(status.step, issued_step_.load(std::memory_order_relaxed), peer.is_waiting);
  }
  return statuses;
}

// To rank 0, with each heartbeat: what the experts of a stage further on have served. The ranks of
// its own stage have counted the same.
std::string MpiReplica::Report() {
  const Rank* const rank = loaded_rank_.load(std::memory_order_acquire);
  if (rank == nullptr || rank->part().first_stage || rank->part().tensor_rank != 0) {
    return "";
  }
  return rank->expert_load().Piece(rank->part().layers, comm::kControlReportBytesMax,
                                   &report_cursor_);
}

std::vector<model::ExpertLayerLoad> MpiReplica::ExpertLoads() const {
  const topology::Range own = rank_->part().layers;
  std::vector<model::ExpertLayerLoad> loads = rank_->expert_load().Layers(own);
  if (const model::ExpertLoad* const heard = heard_load_.load(std::memory_order_acquire)) {
    std::vector<model::ExpertLayerLoad> others =
        heard->Layers({own.end, static_cast<int64_t>(info_.model.layers.size())});
    std::move(others.begin(), others.end(), std::back_inserter(loads));
  }
  return loads;
}

absl::Status MpiReplica::RunRank(PlanSource* plans) {
  return rank_->Run({.tensor = groups_.tensor.get(),
                     .pipeline = groups_.pipeline.get(),
                     .previous_rank = groups_.previous_rank,
                     .next_rank = groups_.next_rank,
                     .plans = plans,
                     .before_step = before_step_});
}

absl::Status MpiReplica::RunWorker() {
  return Explain(RunRank(MakeProcessPlanSource(groups_.control.get(), info_.limits).get()));
}

void MpiReplica::Shutdown() {
  controller_->Stop(absl::CancelledError("the replica ends"));
  // The engine thread has ended, so this thread is the one that sends plans now.
  if (const absl::Status status = pipeline_->SendShutdown(); !status.ok()) {
    pipeline_->Close(status);
  }
  worker_.join();
}

void MpiReplica::Leave(const absl::Status& reason) {
  has_left_ = true;
  link_->Leave(reason);
  if (reason.ok()) {
    // Only the result reader still waits, and on sockets: MPI stays whole and ends in order.
    groups_.control->Abort(absl::CancelledError("the replica ends"));
  } else {
    groups_.Abort(reason);
  }
}

absl::Status MpiReplica::LeaveStart(const absl::Status& failure) {
  const absl::Status reason = link_ == nullptr ? failure : Explain(failure);
  if (const absl::Status lost = verdict_.Get(); !lost.ok()) {
    Leave(lost);
  }
  return reason;
}

MpiReplica::~MpiReplica() {
  const absl::Status reason = absl::CancelledError("the replica ends");
  if (controller_ != nullptr) {
    controller_->Stop(reason);
    pipeline_->Close(reason);
  }
  if (!has_left_ && groups_.control != nullptr) {
    groups_.Abort(reason);
  }
  if (worker_.joinable()) {
    worker_.join();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessReplica>> ProcessReplica::Start(
    comm::MpiWorld& world, const weights::Checkpoint& checkpoint, const ReplicaOptions& options,
    const std::function<void()>& on_connected) {
  auto replica = std::make_unique<MpiReplica>();
  const absl::Status status = replica->Start(world, checkpoint, options, on_connected);
  if (!status.ok()) {
    return replica->LeaveStart(status);
  }
  return replica;
}

}  // namespace trireme::engine

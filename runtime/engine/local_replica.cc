#include "runtime/engine/local_replica.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/groups.h"
#include "runtime/comm/rank_place.h"
#include "runtime/engine/controller.h"
#include "runtime/engine/in_process_pipeline.h"
#include "runtime/engine/model_text.h"
#include "runtime/engine/rank.h"
#include "runtime/engine/stall_watch.h"

namespace trireme::engine {
namespace {

// Adds up the progress of ranks that load at the same time.
class SharedProgress {
 public:
  SharedProgress(int ranks, const weights::LoadProgress& progress)
      : progress_(progress), done_bytes_(ranks), total_bytes_(ranks) {}

  void SetTotal(int rank, int64_t bytes) { total_bytes_[rank] = bytes; }

  weights::LoadProgress OfRank(int rank) {
    if (!progress_) {
      return nullptr;
    }
    return [this, rank](int64_t done_bytes, int64_t total_bytes) {
      MutexLock lock(&mutex_);
      done_bytes_[rank] = done_bytes;
      total_bytes_[rank] = total_bytes;
      int64_t done = 0;
      int64_t total = 0;
      for (size_t i = 0; i < done_bytes_.size(); ++i) {
        done += done_bytes_[i];
        total += total_bytes_[i];
      }
      progress_(done, total);
    };
  }

 private:
  const weights::LoadProgress& progress_;
  Mutex mutex_;
  std::vector<int64_t> done_bytes_;   // [ranks]
  std::vector<int64_t> total_bytes_;  // [ranks]
};

absl::StatusOr<std::vector<std::unique_ptr<Rank>>> PlanRanks(
    const RankOptions& options, const weights::Checkpoint& checkpoint) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < options.layout.ranks(); ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Rank> planned, Rank::Plan(options, checkpoint, rank));
    ranks.push_back(std::move(planned));
  }
  return ranks;
}

// All ranks fit together, or nothing is loaded.
absl::Status CheckMemory(const std::vector<std::unique_ptr<Rank>>& ranks) {
  int64_t needed_bytes = 0;
  for (const std::unique_ptr<Rank>& rank : ranks) {
    needed_bytes += rank->bytes().total();
  }
  const int64_t available_bytes = device::AvailableMemoryBytes();
  if (needed_bytes > available_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the model does not fit: ", ranks.size(), " ranks need ", needed_bytes,
        " bytes for weights, KV and ", "workspace, this host has ", available_bytes,
        " available; use a shorter context, fewer KV tokens or fewer bits per weight"));
  }
  return absl::OkStatus();
}

absl::Status LoadRanks(const weights::Checkpoint& checkpoint, const weights::LoadProgress& progress,
                       const std::vector<std::unique_ptr<Rank>>& ranks) {
  SharedProgress shared(static_cast<int>(ranks.size()), progress);
  std::vector<absl::Status> statuses(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    shared.SetTotal(static_cast<int>(i), ranks[i]->bytes().weights);
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back(
        [&, i] { statuses[i] = ranks[i]->Load(checkpoint, shared.OfRank(static_cast<int>(i))); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const absl::Status& status : statuses) {
    RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

class LocalReplica : public Replica {
 public:
  ~LocalReplica() override;

  absl::Status Start(const weights::Checkpoint& checkpoint, const ReplicaOptions& options);

  Controller& controller() override { return *controller_; }
  const ModelText& text() const override { return text_; }
  const ReplicaInfo& info() const override { return info_; }
  std::vector<RankStatus> RankStatuses() const override;
  std::vector<model::ExpertLayerLoad> ExpertLoads() const override;

 private:
  void RunRank(int rank);
  // The replica cannot go on: everybody in it is told, and `on_loss` once.
  void Lose(const absl::Status& reason, const absl::Status& told);

  ReplicaLossHandler on_loss_;
  StepHook before_step_;
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> loss_reported_{false};
  ReplicaInfo info_;
  ModelText text_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<comm::RankGroups> groups_;
  std::unique_ptr<InProcessPipeline> pipeline_;
  std::unique_ptr<Controller> controller_;
  std::vector<std::thread> threads_;
  std::unique_ptr<StallWatch> stall_watch_;  // null when nobody would hear of a loss
};

// The loop of one rank thread. A rank that fails takes the replica with it.
void LocalReplica::RunRank(int rank) {
  comm::RankGroups& own = groups_[rank];
  const absl::Status status = ranks_[rank]->Run({.tensor = own.tensor.get(),
                                                 .pipeline = own.pipeline.get(),
                                                 .previous_rank = own.previous_rank,
                                                 .next_rank = own.next_rank,
                                                 .plans = pipeline_->source(rank),
                                                 .before_step = before_step_});
  if (!status.ok()) {
    Lose(status,
         WithReason(absl::UnavailableError(absl::StrCat("rank=", rank, ": ", status.message())),
                    kReasonRankLost));
  }
}

void LocalReplica::Lose(const absl::Status& reason, const absl::Status& told) {
  for (const comm::RankGroups& group : groups_) {
    group.Abort(reason);
  }
  pipeline_->ReportLoss(reason);
  if (!is_ending_.load() && !loss_reported_.exchange(true) && on_loss_) {
    on_loss_(told);
  }
}

absl::Status LocalReplica::Start(const weights::Checkpoint& checkpoint,
                                 const ReplicaOptions& options) {
  on_loss_ = options.on_loss;
  before_step_ = options.before_step;
  info_.model = checkpoint.model_spec();
  info_.fingerprint = checkpoint.FingerprintValue();
  RankOptions rank_options = options.ranks;
  ASSIGN_OR_RETURN(rank_options.limits, ResolveLimits(options.ranks.limits, info_.model));
  info_.limits = rank_options.limits;
  ASSIGN_OR_RETURN(ranks_, PlanRanks(rank_options, checkpoint));
  ASSIGN_OR_RETURN(text_, ReadReplicaText(checkpoint));
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    info_.rank_bytes.push_back(rank->bytes());
    info_.rank_work.push_back(rank->work());
  }
  info_.table = ranks_[0]->table().name;
  RETURN_IF_ERROR(CheckMemory(ranks_));
  RETURN_IF_ERROR(LoadRanks(checkpoint, options.progress, ranks_));

  const topology::Layout& layout = rank_options.layout;
  ASSIGN_OR_RETURN(groups_, comm::MakeThreadGroups(
                                {.tensor_ranks = layout.tensor_ranks, .stages = layout.stages}));
  pipeline_ = std::make_unique<InProcessPipeline>(layout.ranks(), layout.stages, info_.limits);
  ASSIGN_OR_RETURN(controller_,
                   Controller::Create({.limits = info_.limits,
                                       .queued_requests_max = options.queued_requests_max,
                                       .vocabulary = info_.model.vocabulary},
                                      pipeline_.get(), text_.tokenizer.get(), SteadyClock()));
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    threads_.emplace_back([this, rank] { RunRank(rank); });
  }
  if (on_loss_) {
    std::vector<const WorkerProgress*> progress;
    for (const std::unique_ptr<Rank>& rank : ranks_) {
      progress.push_back(&rank->progress());
    }
    stall_watch_ = std::make_unique<StallWatch>(
        options.links.monitor, std::move(progress), [this](const absl::Status& stall) {
          // For streams it is a lost rank like any other; DeadlineExceeded is their own deadline.
          Lose(WithReason(absl::UnavailableError(stall.message()), kReasonRankLost),
               WithReason(stall, kReasonRankLost));
        });
  }
  return absl::OkStatus();
}

// Threads of one process have no heartbeats: what they say is true now.
std::vector<RankStatus> LocalReplica::RankStatuses() const {
  const std::string host = comm::LocalPlace("").host;
  std::vector<RankStatus> statuses;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    const bool is_computing = rank->progress().is_computing.load(std::memory_order_relaxed);
    statuses.push_back({.rank = static_cast<int>(statuses.size()),
                        .stage = rank->part().stage,
                        .tensor_rank = rank->part().tensor_rank,
                        .host = host,
                        .process_id = ::getpid(),
                        .step = rank->progress().steps_finished.load(std::memory_order_relaxed),
                        .heartbeat_age = absl::ZeroDuration(),
                        .phase = is_computing ? RankPhase::kComputing : RankPhase::kIdle});
  }
  return statuses;
}

std::vector<model::ExpertLayerLoad> LocalReplica::ExpertLoads() const {
  std::vector<model::ExpertLayerLoad> loads;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    if (rank->part().tensor_rank == 0) {
      std::vector<model::ExpertLayerLoad> own = rank->expert_load().Layers(rank->part().layers);
      std::move(own.begin(), own.end(), std::back_inserter(loads));
    }
  }
  return loads;
}

LocalReplica::~LocalReplica() {
  const absl::Status reason = absl::CancelledError("the replica ends");
  is_ending_.store(true);
  stall_watch_ = nullptr;
  if (controller_ != nullptr) {
    controller_->Stop(reason);
    pipeline_->Close(reason);
  }
  for (const comm::RankGroups& group : groups_) {
    group.Abort(reason);
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replica>> StartLocalReplica(const weights::Checkpoint& checkpoint,
                                                           const ReplicaOptions& options) {
  auto replica = std::make_unique<LocalReplica>();
  RETURN_IF_ERROR(replica->Start(checkpoint, options));
  return replica;
}

}  // namespace trireme::engine

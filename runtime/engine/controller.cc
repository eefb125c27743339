#include "runtime/engine/controller.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/cache/block_pool.h"
#include "runtime/engine/controller_loop.h"
#include "runtime/engine/controller_mailbox.h"
#include "runtime/engine/live_request.h"
#include "runtime/engine/load_board.h"

namespace trireme::engine {
namespace {

absl::Status ValidateOptions(const ControllerOptions& options) {
  const struct {
    absl::string_view name;
    int64_t value;
    int64_t least;
  } counts[] = {
      {"limits.tokens", options.limits.tokens, 1},
      {"limits.sequences", options.limits.sequences, 1},
      {"limits.logit_rows", options.limits.logit_rows, 1},
      {"limits.context", options.limits.context, 2},
      {"limits.blocks", options.limits.blocks, 1},
      {"queued_requests_max", options.queued_requests_max, 1},
      {"vocabulary", options.vocabulary, 1},
  };
  for (const auto& count : counts) {
    if (count.value < count.least) {
      return absl::InvalidArgumentError(absl::StrFormat("controller: %s is %d; wanted at least %d",
                                                        count.name, count.value, count.least));
    }
  }
  if (options.stall_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("controller: stall_timeout must be above zero");
  }
  return absl::OkStatus();
}

class ReplicaController : public Controller {
 public:
  ReplicaController(const ControllerOptions& options, Pipeline* pipeline,
                    const text::Tokenizer* tokenizer, Clock* clock)
      : options_(options),
        tokenizer_(tokenizer),
        clock_(clock),
        mailbox_(std::make_shared<ControllerMailbox>(pipeline->depth(), options.queued_requests_max,
                                                     options.limits.logit_rows)),
        loop_(options, pipeline, clock, mailbox_.get(), &board_) {
    // The handlers share the mailbox: a rank may answer after the controller is gone.
    pipeline->SetHandlers(
        [mailbox = mailbox_](StepResult&& result) { mailbox->PushResult(result); },
        [mailbox = mailbox_](const absl::Status& reason) {
          mailbox->Stop(ReasonOf(reason).empty() ? WithReason(reason, kReasonRankLost) : reason);
        });
    thread_ = std::thread([this] {
      loop_.Run();
      ended_.Notify();
    });
  }

  ~ReplicaController() override {
    Stop(absl::UnavailableError("the replica is shut down"));
    thread_.join();
  }

  absl::Status Submit(schedule::Request request, std::shared_ptr<ResponseStream> stream) override {
    CHECK(stream != nullptr);
    RETURN_IF_ERROR(schedule::ValidateRequest(request, RequestLimits()));
    if (tokenizer_ == nullptr && !request.stopping.stop_strings.empty()) {
      return WithReason(absl::InvalidArgumentError(
                            "stop strings need a tokenizer and this replica has none; use stop "
                            "token ids"),
                        kReasonBadParameter);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<LiveRequest> live,
                     LiveRequest::CreateGenerate(std::move(request), std::move(stream), tokenizer_,
                                                 options_.limits.context, clock_->Now()));
    return mailbox_->Submit(std::move(live));
  }

  bool Cancel(absl::string_view request_id) override { return mailbox_->Cancel(request_id); }

  absl::Status Score(
      const std::vector<int32_t>& token_ids,
      std::function<void(int64_t first_row, absl::Span<const float> logits)> on_rows) override {
    RETURN_IF_ERROR(ValidateScore(token_ids));
    ScoreJob job;
    job.on_rows = std::move(on_rows);
    // No client's id begins with a zero byte.
    std::string id = absl::StrCat(absl::string_view("\0score ", 7), scores_.fetch_add(1));
    RETURN_IF_ERROR(
        mailbox_->Submit(LiveRequest::CreateScore(std::move(id), token_ids, &job, clock_->Now())));
    job.done.WaitForNotification();
    return job.status;
  }

  Load load() const override {
    Load load = board_.Read();
    load.waiting_requests = mailbox_->queued_requests();
    load.draining = mailbox_->draining();
    return load;
  }

  void Drain(std::function<void()> on_idle) override { mailbox_->Drain(std::move(on_idle)); }

  void Stop(const absl::Status& reason) override {
    mailbox_->Stop(reason.ok() ? absl::UnavailableError("the replica is shut down") : reason);
    // A listener of the engine thread itself cannot wait for it.
    if (std::this_thread::get_id() != thread_.get_id()) {
      ended_.WaitForNotification();
    }
  }

 private:
  schedule::RequestLimits RequestLimits() const {
    return {.vocabulary = options_.vocabulary,
            .context = options_.limits.context,
            .blocks = options_.limits.blocks};
  }

  absl::Status ValidateScore(const std::vector<int32_t>& token_ids) const {
    const auto tokens = static_cast<int64_t>(token_ids.size());
    const int64_t cache_tokens = int64_t{options_.limits.blocks} * cache::kBlockTokens;
    const int64_t tokens_max = std::min<int64_t>(options_.limits.context, cache_tokens);
    if (tokens < 1 || tokens > tokens_max) {
      return WithReason(
          absl::InvalidArgumentError(absl::StrFormat(
              "a sequence of %d tokens cannot be scored; wanted 1 to %d (context %d, cache %d)",
              tokens, tokens_max, options_.limits.context, cache_tokens)),
          tokens < 1 ? kReasonBadParameter : kReasonPromptTooLong);
    }
    return schedule::ValidateTokenIds(token_ids, "token_ids", options_.vocabulary);
  }

  const ControllerOptions options_;
  const text::Tokenizer* const tokenizer_;
  Clock* const clock_;
  const std::shared_ptr<ControllerMailbox> mailbox_;
  LoadBoard board_;
  std::atomic<uint64_t> scores_{0};
  Notification ended_;
  ControllerLoop loop_;  // the engine thread's
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Controller>> Controller::Create(const ControllerOptions& options,
                                                               Pipeline* pipeline,
                                                               const text::Tokenizer* tokenizer,
                                                               Clock* clock) {
  CHECK(pipeline != nullptr);
  CHECK(clock != nullptr);
  RETURN_IF_ERROR(ValidateOptions(options));
  if (pipeline->depth() < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "controller: the pipeline's depth is %d; wanted at least 1", pipeline->depth()));
  }
  return std::make_unique<ReplicaController>(options, pipeline, tokenizer, clock);
}

}  // namespace trireme::engine

#include "tests/support/fake_controller.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme {

FakeController::FakeController(const FakeControllerOptions& options)
    : options_(options), thread_([this] { Run(); }) {}

FakeController::~FakeController() {
  Stop(absl::CancelledError("the test is over"));
  thread_.join();
}

int32_t FakeController::TokenAt(const std::vector<int32_t>& prompt, uint32_t choice,
                                int64_t position, int64_t vocabulary) {
  uint64_t value = 17 + 13 * choice;
  for (const int32_t id : prompt) {
    value = value * 31 + static_cast<uint64_t>(id);
  }
  value += static_cast<uint64_t>(position) * 7919;
  return static_cast<int32_t>(value % static_cast<uint64_t>(vocabulary));
}

std::string FakeController::TextOf(int32_t token_id) { return absl::StrCat("<", token_id, ">"); }

void FakeController::Hold(bool held) {
  MutexLock lock(&mutex_);
  held_ = held;
  changed_.SignalAll();
}

int64_t FakeController::started_requests() const {
  MutexLock lock(&mutex_);
  return started_requests_;
}

int64_t FakeController::live_requests() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(live_.size());
}

std::vector<schedule::Request> FakeController::submitted() const {
  MutexLock lock(&mutex_);
  return submitted_;
}

bool FakeController::WaitUntilStarted(int64_t requests, absl::Duration patience) {
  MutexLock lock(&mutex_);
  return changed_.WaitFor(&mutex_, patience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return started_requests_ >= requests;
  });
}

bool FakeController::WaitUntilIdle(absl::Duration patience) {
  MutexLock lock(&mutex_);
  return changed_.WaitFor(&mutex_, patience,
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return live_.empty(); });
}

absl::Status FakeController::Submit(schedule::Request request,
                                    std::shared_ptr<engine::ResponseStream> stream) {
  MutexLock lock(&mutex_);
  if (stopping_) {
    return stop_reason_;
  }
  if (draining_) {
    return WithReason(absl::UnavailableError("draining"), kReasonDraining);
  }
  if (static_cast<int64_t>(live_.size()) >= options_.queued_requests_max) {
    return WithReason(absl::ResourceExhaustedError("the queue is full"), kReasonOverloaded);
  }
  for (const Live& live : live_) {
    if (live.request.id == request.id) {
      return WithReason(absl::AlreadyExistsError("the id is in use"), kReasonRequestId);
    }
  }
  submitted_.push_back(request);
  live_.push_back({std::move(request), std::move(stream)});
  changed_.SignalAll();
  return absl::OkStatus();
}

bool FakeController::Cancel(absl::string_view request_id) {
  MutexLock lock(&mutex_);
  for (Live& live : live_) {
    if (live.request.id == request_id) {
      live.cancelled = true;
      return true;
    }
  }
  return false;
}

absl::Status FakeController::Score(const std::vector<int32_t>&,
                                   std::function<void(int64_t, absl::Span<const float>)>) {
  return absl::UnimplementedError("the fake has no logits");
}

engine::Load FakeController::load() const {
  MutexLock lock(&mutex_);
  engine::Load load;
  for (const Live& live : live_) {
    ++(live.started ? load.running_sequences : load.waiting_requests);
  }
  load.blocks_total = options_.blocks_total;
  load.blocks_free = options_.blocks_total - static_cast<int64_t>(live_.size());
  load.draining = draining_;
  return load;
}

void FakeController::Drain(std::function<void()>) {
  MutexLock lock(&mutex_);
  draining_ = true;
}

void FakeController::Stop(const absl::Status& reason) {
  std::list<Live> ended;
  {
    MutexLock lock(&mutex_);
    if (stopping_) {
      return;
    }
    stopping_ = true;
    stop_reason_ = reason;
    ended.swap(live_);
    changed_.SignalAll();
  }
  for (Live& live : ended) {
    engine::Ending ending;
    ending.status = reason;
    live.stream->Finish(std::move(ending), "");
  }
}

void FakeController::Run() {
  MutexLock lock(&mutex_);
  while (true) {
    while (!stopping_ && live_.empty()) {
      changed_.Wait(&mutex_);
    }
    if (stopping_) {
      return;
    }
    ++step_;
    live_.remove_if([this](Live& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      bool ended = false;
      for (int64_t count = 0; count < options_.tokens_per_step && !ended; ++count) {
        ended = Advance(live);
      }
      return ended;
    });
    changed_.SignalAll();
    const absl::Duration pause =
        held_ ? std::max(options_.step_time, absl::Milliseconds(1)) : options_.step_time;
    changed_.WaitFor(&mutex_, pause,
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
  }
}

bool FakeController::Advance(Live& live) {
  engine::Ending ending;
  ending.usage.prompt_tokens = static_cast<int64_t>(live.request.prompt.size());
  ending.usage.generated_tokens = live.position - static_cast<int64_t>(live.request.emitted.size());
  if (live.cancelled || live.stream->cancelled()) {
    ending.status = WithReason(absl::CancelledError("cancelled"), kReasonByClient);
    live.stream->Finish(std::move(ending), "");
    return true;
  }
  if (SteadyClock()->Now() >= live.request.deadline) {
    ending.status = WithReason(absl::DeadlineExceededError("too late"),
                               live.started ? kReasonRunning : kReasonInQueue);
    live.stream->Finish(std::move(ending), "");
    return true;
  }
  if (held_) {
    return false;
  }
  if (!live.started) {
    live.started = true;
    ++started_requests_;
    live.position = static_cast<int64_t>(live.request.emitted.size());
    live.stream->Accept(live.position);
  }
  const int64_t held = static_cast<int64_t>(live.request.prompt.size()) + live.position;
  const bool is_full = held >= options_.context;
  if (is_full || live.position >= live.request.stopping.max_tokens) {
    ending.reason =
        is_full ? schedule::FinishReason::kContextFull : schedule::FinishReason::kMaxTokens;
    live.stream->Finish(std::move(ending), options_.text_tail);
    return true;
  }
  const int32_t id =
      TokenAt(live.request.prompt, live.request.choice, live.position, options_.vocabulary);
  live.stream->Push(id, live.request.want_logprobs ? std::optional<float>(-0.5f) : std::nullopt,
                    live.request.want_text ? TextOf(id) : "");
  ++live.position;
  return false;
}

}  // namespace trireme

#include "tests/benchmarks/clock_replica.h"

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "runtime/base/clock.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/mutex.h"

namespace trireme {
namespace {

struct Live {
  schedule::Request request;
  std::shared_ptr<engine::ResponseStream> stream;
  int64_t tokens = 0;
};

class ClockController final : public engine::Controller {
 public:
  explicit ClockController(absl::Duration period) : period_(period), thread_([this] { Run(); }) {}

  ~ClockController() override {
    Stop(absl::CancelledError("over"));
    thread_.join();
  }

  absl::Status Submit(schedule::Request request,
                      std::shared_ptr<engine::ResponseStream> stream) override {
    Live live{std::move(request), std::move(stream)};
    live.stream->Accept(static_cast<int64_t>(live.request.emitted.size()));
    live.tokens = static_cast<int64_t>(live.request.emitted.size());
    if (Advance(live)) {
      MutexLock lock(&mutex_);
      due_.emplace(SteadyClock()->Now() + period_, std::move(live));
      changed_.SignalAll();
    }
    return absl::OkStatus();
  }

  bool Cancel(absl::string_view) override { return true; }  // the stream's flag says it too

  absl::Status Score(const std::vector<int32_t>&,
                     std::function<void(int64_t, absl::Span<const float>)>) override {
    return absl::UnimplementedError("no logits");
  }

  engine::Load load() const override {
    MutexLock lock(&mutex_);
    engine::Load load;
    load.running_sequences = static_cast<int64_t>(due_.size());
    load.blocks_total = load.blocks_free = 1'000'000;
    load.prefill_tokens_per_second = 100'000;
    return load;
  }

  void Drain(std::function<void()>) override {}

  void Stop(const absl::Status&) override {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }

 private:
  static void Finish(Live& live, absl::Status status) {
    engine::Ending ending;
    ending.status = std::move(status);
    ending.reason = schedule::FinishReason::kMaxTokens;
    ending.usage.generated_tokens = live.tokens - static_cast<int64_t>(live.request.emitted.size());
    live.stream->Finish(std::move(ending), {});
  }

  // False when the request has ended.
  static bool Advance(Live& live) {
    if (live.stream->cancelled()) {
      Finish(live, absl::CancelledError("cancelled"));
      return false;
    }
    live.stream->Push(MicrosecondNow(), std::nullopt, "x");
    if (++live.tokens < live.request.stopping.max_tokens) {
      return true;
    }
    Finish(live, absl::OkStatus());
    return false;
  }

  void Run() {
    MutexLock lock(&mutex_);
    while (!stopping_) {
      const absl::Time now = SteadyClock()->Now();
      const auto first = due_.begin();
      if (first == due_.end()) {
        changed_.Wait(&mutex_);
      } else if (first->first > now) {
        changed_.WaitFor(&mutex_, first->first - now);
      } else {
        const absl::Time next = first->first + period_;
        Live live = std::move(first->second);
        due_.erase(first);
        if (Advance(live)) {
          due_.emplace(next, std::move(live));
        }
      }
    }
  }

  const absl::Duration period_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::multimap<absl::Time, Live> due_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

int32_t MicrosecondNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t microseconds = now.tv_sec * int64_t{1'000'000} + now.tv_nsec / 1000;
  return static_cast<int32_t>(microseconds & 0x7FFFFFFF);
}

std::unique_ptr<engine::Controller> MakeClockController(absl::Duration period) {
  return std::make_unique<ClockController>(period);
}

}  // namespace trireme

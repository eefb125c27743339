// A controller without an engine: its tokens are a pure function of prompt, choice and position,
// its steps come as fast as told, and its books are open. For tests of the service.
#ifndef TRIREME_TESTS_SUPPORT_FAKE_CONTROLLER_H_
#define TRIREME_TESTS_SUPPORT_FAKE_CONTROLLER_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/controller.h"

namespace trireme {

struct FakeControllerOptions {
  int64_t vocabulary = 300;
  int64_t context = 64;
  absl::Duration step_time = absl::ZeroDuration();
  int64_t tokens_per_step = 1;  // more: faster than any reader
  int32_t queued_requests_max = 1024;
  int64_t blocks_total = 100;  // each live request holds one
  std::string text_tail;       // that comes with the end
};

class FakeController final : public engine::Controller {
 public:
  explicit FakeController(const FakeControllerOptions& options);
  ~FakeController() override;

  // The token at `position`, and its text.
  static int32_t TokenAt(const std::vector<int32_t>& prompt, uint32_t choice, int64_t position,
                         int64_t vocabulary);
  static std::string TextOf(int32_t token_id);

  // While held, requests stay in the queue and running ones make no token.
  void Hold(bool held);

  // Requests that ever left the queue, and that are live now.
  int64_t started_requests() const;
  int64_t live_requests() const;
  // As submitted, in order.
  std::vector<schedule::Request> submitted() const;
  // True when so many requests have left the queue before `patience` ends.
  bool WaitUntilStarted(int64_t requests, absl::Duration patience);
  bool WaitUntilIdle(absl::Duration patience);

  absl::Status Submit(schedule::Request request,
                      std::shared_ptr<engine::ResponseStream> stream) override;
  bool Cancel(absl::string_view request_id) override;
  absl::Status Score(const std::vector<int32_t>& token_ids,
                     std::function<void(int64_t, absl::Span<const float>)> on_rows) override;
  engine::Load load() const override;
  void Drain(std::function<void()> on_idle) override;
  void Stop(const absl::Status& reason) override;

 private:
  struct Live {
    schedule::Request request;
    std::shared_ptr<engine::ResponseStream> stream;
    int64_t position = 0;
    bool started = false;
    bool cancelled = false;
  };

  void Run();
  // True when the request has ended.
  bool Advance(Live& live);

  const FakeControllerOptions options_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::list<Live> live_ ABSL_GUARDED_BY(mutex_);
  std::vector<schedule::Request> submitted_ ABSL_GUARDED_BY(mutex_);
  int64_t started_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stop_reason_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_FAKE_CONTROLLER_H_

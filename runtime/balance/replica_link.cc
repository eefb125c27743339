#include "runtime/balance/replica_link.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine.grpc.pb.h"
#include "runtime/balance/lease_call.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/callback_threads.h"
#include "runtime/serve/grpc_status.h"

namespace trireme::balance {
namespace {

// A connection is tried for so long, and after a failure again after a pause of up to the second.
constexpr int kConnectTimeoutMs = 2000;
constexpr int kReconnectPauseMinMs = 100;
constexpr int kReconnectPauseMaxMs = 1000;

absl::Status ReplicaLost(const ReplicaLinkOptions& options, absl::string_view why) {
  return WithReason(absl::UnavailableError(absl::StrCat("replica ", options.name, " at ",
                                                        options.endpoint, " is lost: ", why)),
                    kReasonReplicaLost);
}

// What gRPC itself says of an attempt means that the connection or the process is gone; what the
// replica says has details.
absl::Status StatusOfAttempt(const serve::RemoteError& error, const ReplicaLinkOptions& options) {
  if (error.has_details) {
    return error.status;
  }
  switch (error.status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kCancelled:
      return ReplicaLost(options, error.status.message());
    case absl::StatusCode::kDeadlineExceeded:
      return WithReason(error.status, kReasonRunning);
    default:
      return error.status;
  }
}

// The calls that are open, so that the link's end can wait for theirs.
class OpenCalls {
 public:
  void Begin() {
    MutexLock lock(&mutex_);
    ++count_;
  }
  void End() {
    MutexLock lock(&mutex_);
    --count_;
    ended_.SignalAll();
  }
  void WaitUntilNone() {
    MutexLock lock(&mutex_);
    while (count_ > 0) {
      ended_.Wait(&mutex_);
    }
  }

 private:
  Mutex mutex_;
  ConditionVariable ended_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ExecuteCall final : public grpc::ClientReadReactor<v1::ExecuteEvent>,
                          public SentAttempt,
                          public std::enable_shared_from_this<ExecuteCall> {
 public:
  ExecuteCall(const ReplicaLinkOptions& options, std::shared_ptr<AttemptListener> listener,
              std::function<void(ExecuteCall*)> on_done)
      : options_(options), listener_(std::move(listener)), on_done_(std::move(on_done)) {}

  void Start(v1::Engine::Stub* stub, const v1::ExecuteRequest& request, absl::Duration time_left) {
    self_ = shared_from_this();
    if (time_left != absl::InfiniteDuration()) {
      context_.set_deadline(std::chrono::system_clock::now() +
                            absl::ToChronoMicroseconds(std::max(time_left, absl::ZeroDuration())));
    }
    stub->async()->Execute(&context_, &request, this);
    StartRead(&event_);
    StartCall();
  }

  void Cancel() override { context_.TryCancel(); }

  // The replica is silent: the attempt ends with `why`, whatever gRPC says.
  void Lose(const absl::Status& why) {
    {
      MutexLock lock(&mutex_);
      lost_ = why;
    }
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      listener_->OnEvent(event_);
      StartRead(&event_);
    }
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<ExecuteCall> self = std::move(self_);
    const serve::RemoteError error = serve::ReadGrpcStatus(status);
    AttemptEnd end{StatusOfAttempt(error, options_), error.retry_delay};
    {
      MutexLock lock(&mutex_);
      if (!lost_.ok() && !end.status.ok()) {
        end.status = lost_;
      }
    }
    listener_->OnEnd(end);
    on_done_(this);
  }

 private:
  const ReplicaLinkOptions& options_;
  const std::shared_ptr<AttemptListener> listener_;
  const std::function<void(ExecuteCall*)> on_done_;
  grpc::ClientContext context_;
  v1::ExecuteEvent event_;
  std::shared_ptr<ExecuteCall> self_;
  Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
};

class WatchCall final : public grpc::ClientReadReactor<v1::LoadReport>,
                        public std::enable_shared_from_this<WatchCall> {
 public:
  struct Hooks {
    std::function<void(const v1::LoadReport&)> on_report;
    std::function<void(WatchCall*, const grpc::Status&)> on_done;
  };

  explicit WatchCall(Hooks hooks) : hooks_(std::move(hooks)) {}

  void Start(v1::Engine::Stub* stub) {
    self_ = shared_from_this();
    context_.set_wait_for_ready(true);
    stub->async()->WatchLoad(&context_, &request_, this);
    StartRead(&report_);
    StartCall();
  }

  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (ok) {
      hooks_.on_report(report_);
      StartRead(&report_);
    }
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<WatchCall> self = std::move(self_);
    hooks_.on_done(this, status);
  }

 private:
  const Hooks hooks_;
  grpc::ClientContext context_;
  v1::WatchLoadRequest request_;
  v1::LoadReport report_;
  std::shared_ptr<WatchCall> self_;
};

class GrpcReplicaLink final : public ReplicaLink {
 public:
  GrpcReplicaLink(ReplicaLinkOptions options, ReplicaLinkListener* listener, Clock* clock)
      : options_(std::move(options)), listener_(*listener), clock_(*clock) {
    MutexLock lock(&mutex_);
    Connect(0);
  }

  ~GrpcReplicaLink() override {
    Calls calls;
    {
      MutexLock lock(&mutex_);
      closing_ = true;
      calls = TakeCalls();
    }
    EndCalls(calls, ReplicaLost(options_, "the balancer ends"));
    open_calls_.WaitUntilNone();
  }

  std::shared_ptr<SentAttempt> Execute(const v1::ExecuteRequest& request, absl::Time deadline,
                                       std::shared_ptr<AttemptListener> listener) override {
    auto call = std::make_shared<ExecuteCall>(options_, std::move(listener),
                                              [this](ExecuteCall* done) { EndExecute(done); });
    std::shared_ptr<v1::Engine::Stub> stub;
    {
      MutexLock lock(&mutex_);
      stub = stubs_[next_stub_++ % stubs_.size()];
      executes_.insert(call);
    }
    open_calls_.Begin();
    call->Start(stub.get(), request, deadline - clock_.Now());
    return call;
  }

  absl::Time Tick(absl::Time now) override;

 private:
  struct Calls {
    std::shared_ptr<WatchCall> watch;
    std::shared_ptr<LeaseCall> lease;
    absl::flat_hash_set<std::shared_ptr<ExecuteCall>> executes;
  };

  // New connections in place of all but the first `kept`. What runs on the old ones goes on.
  void Connect(size_t kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Calls TakeCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void EndCalls(const Calls& calls, const absl::Status& why);
  void StartWatch();
  void NoteReport(const v1::LoadReport& report);
  void EndWatch(WatchCall* call, const grpc::Status& status);
  void EndExecute(ExecuteCall* call);
  void EndLease(const LeaseCall* call);
  void KeepLease(absl::Time now);
  void NoteSilence(absl::Time now);

  const ReplicaLinkOptions options_;
  ReplicaLinkListener& listener_;
  Clock& clock_;
  OpenCalls open_calls_;
  Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<v1::Engine::Stub>> stubs_ ABSL_GUARDED_BY(mutex_);  // [connections]
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);                // of the last one
  size_t next_stub_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<WatchCall> watch_ ABSL_GUARDED_BY(mutex_);
  bool watch_has_reports_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time heard_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // last report or watch start
  absl::Time watch_due_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::shared_ptr<LeaseCall> lease_ ABSL_GUARDED_BY(mutex_);
  absl::Time ping_due_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::flat_hash_set<std::shared_ptr<ExecuteCall>> executes_ ABSL_GUARDED_BY(mutex_);
};

void GrpcReplicaLink::Connect(size_t kept) {
  serve::KeepCallbackThreads();
  stubs_.resize(std::min(stubs_.size(), kept));
  while (stubs_.size() < static_cast<size_t>(std::max(options_.connections, 1))) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // equal channels would share one
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectPauseMinMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectPauseMaxMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // retries are the core's to count
    channel_ =
        grpc::CreateCustomChannel(options_.endpoint, grpc::InsecureChannelCredentials(), arguments);
    stubs_.push_back(v1::Engine::NewStub(channel_));
  }
}

GrpcReplicaLink::Calls GrpcReplicaLink::TakeCalls() {
  return {.watch = std::move(watch_), .lease = std::move(lease_), .executes = executes_};
}

void GrpcReplicaLink::EndCalls(const Calls& calls, const absl::Status& why) {
  if (calls.watch != nullptr) {
    calls.watch->Cancel();
  }
  if (calls.lease != nullptr) {
    calls.lease->Cancel();
  }
  for (const std::shared_ptr<ExecuteCall>& call : calls.executes) {
    call->Lose(why);
  }
}

absl::Time GrpcReplicaLink::Tick(absl::Time now) {
  bool start_watch = false;
  bool is_silent = false;
  {
    MutexLock lock(&mutex_);
    start_watch = watch_ == nullptr && now >= watch_due_;
    is_silent = watch_ != nullptr && now - heard_ >= options_.silence_limit;
  }
  if (is_silent) {
    NoteSilence(now);
  } else if (start_watch) {
    StartWatch();
  }
  KeepLease(now);
  MutexLock lock(&mutex_);
  absl::Time next = watch_ == nullptr ? watch_due_ : heard_ + options_.silence_limit;
  if (!executes_.empty()) {
    next = std::min(next, ping_due_);
  }
  return next;
}

void GrpcReplicaLink::StartWatch() {
  auto watch = std::make_shared<WatchCall>(WatchCall::Hooks{
      .on_report = [this](const v1::LoadReport& report) { NoteReport(report); },
      .on_done = [this](WatchCall* call, const grpc::Status& status) { EndWatch(call, status); }});
  std::shared_ptr<v1::Engine::Stub> stub;
  {
    MutexLock lock(&mutex_);
    if (closing_) {
      return;
    }
    stub = stubs_.front();
    watch_ = watch;
    watch_has_reports_ = false;
    heard_ = clock_.Now();
  }
  open_calls_.Begin();
  watch->Start(stub.get());
}

void GrpcReplicaLink::NoteReport(const v1::LoadReport& report) {
  {
    MutexLock lock(&mutex_);
    heard_ = clock_.Now();
    if (!watch_has_reports_) {
      // The replica is there again, on the watch's connection. Another one may still rest after it
      // was refused, and would fail calls for up to kReconnectPauseMaxMs more.
      Connect(1);
    }
    watch_has_reports_ = true;
  }
  listener_.OnLoadReport(report);
}

void GrpcReplicaLink::EndWatch(WatchCall* call, const grpc::Status& status) {
  bool is_news = false;
  {
    MutexLock lock(&mutex_);
    if (watch_.get() == call) {
      is_news = watch_has_reports_ && !closing_;
      watch_ = nullptr;
      watch_due_ = clock_.Now() + options_.reconnect_pause;
    }
  }
  if (is_news) {
    Log(LogLevel::kWarning, absl::StrCat("replica watch ended replica=", options_.name,
                                         " status=", status.error_message()));
    listener_.OnWatchLost();
  }
  open_calls_.End();
}

void GrpcReplicaLink::NoteSilence(absl::Time now) {
  Calls calls;
  bool was_heard = false;
  {
    MutexLock lock(&mutex_);
    was_heard = watch_has_reports_;
    watch_due_ = now;
    if (was_heard) {
      // Bytes that wait in a connection to nobody keep it busy for minutes: new ones.
      calls = TakeCalls();
      Connect(0);
    } else {
      calls.watch = std::move(watch_);
    }
    watch_ = nullptr;
    lease_ = nullptr;
  }
  const std::string why =
      absl::StrCat("no sign of life for ", absl::FormatDuration(options_.silence_limit));
  EndCalls(calls, ReplicaLost(options_, why));
  if (was_heard) {
    Log(LogLevel::kWarning, absl::StrCat("replica silent replica=", options_.name,
                                         " attempts=", calls.executes.size()));
    listener_.OnWatchLost();
  }
}

void GrpcReplicaLink::EndExecute(ExecuteCall* call) {
  {
    MutexLock lock(&mutex_);
    const auto found = std::find_if(executes_.begin(), executes_.end(),
                                    [call](const auto& open) { return open.get() == call; });
    if (found != executes_.end()) {
      executes_.erase(found);
    }
  }
  open_calls_.End();
}

void GrpcReplicaLink::EndLease(const LeaseCall* call) {
  {
    MutexLock lock(&mutex_);
    if (lease_.get() == call) {
      lease_ = nullptr;
    }
  }
  open_calls_.End();
}

// Nothing runs: no pings, since there is nothing to keep alive.
void GrpcReplicaLink::KeepLease(absl::Time now) {
  std::shared_ptr<LeaseCall> lease;
  {
    MutexLock lock(&mutex_);
    if (closing_ || executes_.empty() || now < ping_due_) {
      return;
    }
    ping_due_ = now + options_.lease_period;
    if (lease_ == nullptr) {
      open_calls_.Begin();
      lease_ = LeaseCall::Start(channel_, options_.lease,
                                [this](const LeaseCall* done) { EndLease(done); });
    }
    lease = lease_;
  }
  lease->Ping();
}

}  // namespace

std::unique_ptr<ReplicaLink> ReplicaLink::Create(ReplicaLinkOptions options,
                                                 ReplicaLinkListener* listener, Clock* clock) {
  return std::make_unique<GrpcReplicaLink>(std::move(options), listener, clock);
}

}  // namespace trireme::balance

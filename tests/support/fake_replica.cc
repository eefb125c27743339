#include "tests/support/fake_replica.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine.grpc.pb.h"
#include "runtime/base/check.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/grpc_status.h"
#include "tests/support/fake_controller.h"

namespace trireme {
namespace {

constexpr int64_t kVocabulary = 300;
constexpr absl::Duration kReportPause = absl::Milliseconds(50);

class ScriptedReplica;

class ExecuteReactor final : public grpc::ServerWriteReactor<v1::ExecuteEvent> {
 public:
  ExecuteReactor(ScriptedReplica* replica, FakeAnswer answer)
      : replica_(replica), answer_(std::move(answer)) {
    Next();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      Next();
    } else {
      End(grpc::Status::CANCELLED);
    }
  }
  void OnCancel() override;
  void OnDone() override { delete this; }

  void End(const grpc::Status& status) {
    {
      MutexLock lock(&mutex_);
      if (ended_) {
        return;
      }
      ended_ = true;
    }
    Finish(status);
  }

 private:
  void Next() {
    if (next_ < answer_.events.size()) {
      StartWrite(&answer_.events[next_++]);
    } else if (answer_.is_bare) {
      End(grpc::Status(static_cast<grpc::StatusCode>(answer_.status.code()), "Socket closed"));
    } else if (!answer_.hangs) {
      End(answer_.status.ok() ? grpc::Status::OK : serve::ToGrpcStatus(answer_.status, "test"));
    }
  }

  ScriptedReplica* const replica_;
  FakeAnswer answer_;
  size_t next_ = 0;
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class WatchReactor final : public grpc::ServerWriteReactor<v1::LoadReport> {
 public:
  explicit WatchReactor(ScriptedReplica* replica);
  void OnWriteDone(bool) override {
    MutexLock lock(&mutex_);
    writing_ = false;
  }
  void OnCancel() override { End(); }
  void OnDone() override;

  void Report(const v1::LoadReport& report) {
    MutexLock lock(&mutex_);
    if (!writing_ && !ended_) {
      writing_ = true;
      report_ = report;
      StartWrite(&report_);
    }
  }
  void End() {
    MutexLock lock(&mutex_);
    if (!ended_) {
      ended_ = true;
      Finish(grpc::Status::CANCELLED);
    }
  }

 private:
  ScriptedReplica* const replica_;
  Mutex mutex_;
  v1::LoadReport report_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class LeaseReactor final : public grpc::ServerBidiReactor<v1::LeasePing, v1::LeasePong> {
 public:
  explicit LeaseReactor(ScriptedReplica* replica) : replica_(replica) { StartRead(&ping_); }
  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  ScriptedReplica* const replica_;
  v1::LeasePing ping_;
};

class ScriptedReplica final : public FakeReplica, public v1::Engine::CallbackService {
 public:
  ScriptedReplica(Script script, int port) : script_(std::move(script)), reports_(ServingReport) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    CHECK(server_ != nullptr);
    thread_ = std::thread([this] { RunReports(); });
  }

  ~ScriptedReplica() override { Die(); }

  grpc::ServerWriteReactor<v1::ExecuteEvent>* Execute(grpc::CallbackServerContext*,
                                                      const v1::ExecuteRequest* request) override {
    {
      MutexLock lock(&mutex_);
      executed_.push_back(*request);
    }
    return new ExecuteReactor(this, script_(*request));
  }
  grpc::ServerWriteReactor<v1::LoadReport>* WatchLoad(grpc::CallbackServerContext*,
                                                      const v1::WatchLoadRequest*) override {
    return new WatchReactor(this);
  }
  grpc::ServerBidiReactor<v1::LeasePing, v1::LeasePong>* Lease(
      grpc::CallbackServerContext*) override {
    return new LeaseReactor(this);
  }

  std::string address() const override { return absl::StrCat("127.0.0.1:", port_); }
  int port() const override { return port_; }
  void SetReports(Reports reports) override {
    MutexLock lock(&mutex_);
    reports_ = std::move(reports);
  }
  void FallSilent() override {
    MutexLock lock(&mutex_);
    silent_ = true;
  }
  std::vector<v1::ExecuteRequest> executed() const override {
    MutexLock lock(&mutex_);
    return executed_;
  }
  int64_t cancelled() const override {
    MutexLock lock(&mutex_);
    return cancelled_;
  }
  bool WaitUntilCancelled(int64_t count, absl::Duration patience) const override {
    return WaitFor(patience,
                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return cancelled_ >= count; });
  }
  int64_t lease_pings() const override {
    MutexLock lock(&mutex_);
    return lease_pings_;
  }
  bool WaitUntilPinged(absl::Duration patience) const override {
    return WaitFor(patience,
                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return lease_pings_ > 0; });
  }
  void Die() override {
    {
      MutexLock lock(&mutex_);
      if (dead_) {
        return;
      }
      dead_ = true;
      changed_.SignalAll();
    }
    thread_.join();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  void NoteCancelled() {
    MutexLock lock(&mutex_);
    ++cancelled_;
    changed_.SignalAll();
  }
  void NotePing() {
    MutexLock lock(&mutex_);
    ++lease_pings_;
    changed_.SignalAll();
  }
  void AddWatch(WatchReactor* watch) {
    MutexLock lock(&mutex_);
    watches_.insert(watch);
  }
  void RemoveWatch(WatchReactor* watch) {
    MutexLock lock(&mutex_);
    watches_.erase(watch);
  }

 private:
  template <typename Condition>
  bool WaitFor(absl::Duration patience, const Condition& condition) const {
    const absl::Time end = absl::Now() + patience;
    MutexLock lock(&mutex_);
    while (!condition() && absl::Now() < end) {
      changed_.WaitFor(&mutex_, end - absl::Now());
    }
    return condition();
  }

  void RunReports() {
    MutexLock lock(&mutex_);
    while (!dead_) {
      if (!silent_ && !watches_.empty()) {
        const v1::LoadReport report = reports_(++report_number_);
        for (WatchReactor* watch : watches_) {
          watch->Report(report);
        }
      }
      changed_.WaitFor(&mutex_, kReportPause);
    }
  }

  const Script script_;
  int port_ = 0;
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  Reports reports_ ABSL_GUARDED_BY(mutex_);
  uint64_t report_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<WatchReactor*> watches_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ExecuteRequest> executed_ ABSL_GUARDED_BY(mutex_);
  int64_t cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lease_pings_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
  std::unique_ptr<grpc::Server> server_;  // last: its calls use the others
};

void ExecuteReactor::OnCancel() {
  replica_->NoteCancelled();
  End(grpc::Status::CANCELLED);
}

WatchReactor::WatchReactor(ScriptedReplica* replica) : replica_(replica) {
  replica_->AddWatch(this);
}

void WatchReactor::OnDone() {
  {
    // Whoever called Finish has left the lock.
    MutexLock lock(&mutex_);
  }
  replica_->RemoveWatch(this);
  delete this;
}

void LeaseReactor::OnReadDone(bool ok) {
  if (!ok) {
    Finish(grpc::Status::OK);
    return;
  }
  replica_->NotePing();
  StartRead(&ping_);
}

}  // namespace

v1::LoadReport FakeReplica::ServingReport(uint64_t number) {
  v1::LoadReport report;
  report.set_epoch(7);
  report.set_report_seq(number);
  report.set_phase(v1::REPLICA_PHASE_SERVING);
  report.set_weight(1);
  report.set_kv_blocks_total(100);
  report.set_kv_blocks_free(100);
  report.set_new_requests_max(1000);
  report.set_fingerprint("f1");
  return report;
}

std::unique_ptr<FakeReplica> FakeReplica::Start(Script script, int port) {
  return std::make_unique<ScriptedReplica>(std::move(script), port);
}

std::vector<v1::ExecuteEvent> HonestEvents(const v1::ExecuteRequest& request, int64_t tokens,
                                           bool with_end) {
  std::vector<v1::ExecuteEvent> events;
  const auto add = [&events]() -> v1::ExecuteEvent& {
    events.emplace_back();
    events.back().set_seq(events.size());
    return events.back();
  };
  v1::ExecuteAccepted* accepted = add().mutable_accepted();
  accepted->set_fingerprint("f1");
  accepted->set_prompt_tokens(request.token_ids_size());
  const std::vector<int32_t> prompt(request.token_ids().begin(), request.token_ids().end());
  const v1::ChoiceState& choice = request.choices(0);
  for (int64_t position = choice.emitted_size(); position < tokens; ++position) {
    const int32_t id = FakeController::TokenAt(prompt, choice.choice(), position, kVocabulary);
    v1::ExecuteTokens* out = add().mutable_tokens();
    out->set_choice(choice.choice());
    out->set_first_position(position);
    out->add_token_ids(id);
    out->set_text(FakeController::TextOf(id));
  }
  if (with_end) {
    v1::ChoiceFinished* finished = add().mutable_choice_finished();
    finished->set_choice(choice.choice());
    finished->set_reason(v1::FINISH_REASON_MAX_TOKENS);
    add().mutable_finished()->mutable_usage()->set_generated_tokens(tokens - choice.emitted_size());
  }
  return events;
}

}  // namespace trireme

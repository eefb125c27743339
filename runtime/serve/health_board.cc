#include "runtime/serve/health_board.h"

#include <utility>

#include "grpc/health/v1/health.grpc.pb.h"

namespace trireme::serve {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckResponse::ServingStatus WireHealth(Health health) {
  switch (health) {
    case Health::kUnknownService:
      return HealthCheckResponse::SERVICE_UNKNOWN;
    case Health::kNotServing:
      return HealthCheckResponse::NOT_SERVING;
    case Health::kServing:
      return HealthCheckResponse::SERVING;
  }
  return HealthCheckResponse::UNKNOWN;
}

// Only the newest health matters: what changes during a write is written after it.
class WatchCall final : public grpc::ServerWriteReactor<HealthCheckResponse>,
                        public HealthBoard::Watcher {
 public:
  WatchCall(HealthBoard* board, std::string name) : board_(board), name_(std::move(name)) {
    board_->Add(name_, this);
  }

  void OnHealth(Health health) override {
    MutexLock lock(&mutex_);
    wanted_ = WireHealth(health);
    WriteNext();
  }

  void OnShutdown() override {
    FinishOnce(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server shuts down"));
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) {
      WriteNext();
    }
  }

  void OnCancel() override { FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "")); }

  void OnDone() override {
    board_->Remove(name_, this);
    { MutexLock lock(&mutex_); }
    delete this;
  }

 private:
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || ended_ || (written_any_ && response_.status() == wanted_)) {
      return;
    }
    response_.set_status(wanted_);
    written_any_ = true;
    writing_ = true;
    StartWrite(&response_);
  }

  void FinishOnce(const grpc::Status& status) {
    MutexLock lock(&mutex_);
    if (!ended_) {
      ended_ = true;
      Finish(status);
    }
  }

  HealthBoard* const board_;
  const std::string name_;
  Mutex mutex_;
  HealthCheckResponse response_ ABSL_GUARDED_BY(mutex_);
  HealthCheckResponse::ServingStatus wanted_ ABSL_GUARDED_BY(mutex_) = HealthCheckResponse::UNKNOWN;
  bool written_any_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  explicit HealthService(HealthBoard* board) : board_(board) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const HealthCheckRequest* request,
                                  HealthCheckResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const Health health = board_->Get(request->service());
    if (health == Health::kUnknownService) {
      reactor->Finish(grpc::Status(grpc::StatusCode::NOT_FOUND, "unknown service"));
      return reactor;
    }
    response->set_status(WireHealth(health));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<HealthCheckResponse>* Watch(grpc::CallbackServerContext*,
                                                       const HealthCheckRequest* request) override {
    return new WatchCall(board_, request->service());
  }

 private:
  HealthBoard* const board_;
};

}  // namespace

void HealthBoard::Set(const std::string& name, Health health) {
  MutexLock lock(&mutex_);
  healths_[name] = health;
  Tell(name, health);
}

void HealthBoard::SetAll(Health health) {
  MutexLock lock(&mutex_);
  for (auto& [name, value] : healths_) {
    value = health;
    Tell(name, health);
  }
}

Health HealthBoard::Get(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = healths_.find(name);
  return found == healths_.end() ? Health::kUnknownService : found->second;
}

void HealthBoard::Tell(const std::string& name, Health health) {
  const auto found = watchers_.find(name);
  if (found == watchers_.end()) {
    return;
  }
  for (Watcher* watcher : found->second) {
    watcher->OnHealth(health);
  }
}

void HealthBoard::Add(const std::string& name, Watcher* watcher) {
  MutexLock lock(&mutex_);
  watchers_[name].insert(watcher);
  if (shut_down_) {
    watcher->OnShutdown();
    return;
  }
  const auto found = healths_.find(name);
  watcher->OnHealth(found == healths_.end() ? Health::kUnknownService : found->second);
}

void HealthBoard::Remove(const std::string& name, Watcher* watcher) {
  MutexLock lock(&mutex_);
  const auto found = watchers_.find(name);
  if (found != watchers_.end()) {
    found->second.erase(watcher);
    if (found->second.empty()) {
      watchers_.erase(found);
    }
  }
}

void HealthBoard::Shutdown() {
  MutexLock lock(&mutex_);
  shut_down_ = true;
  for (auto& [name, watchers] : watchers_) {
    for (Watcher* watcher : watchers) {
      watcher->OnShutdown();
    }
  }
}

std::shared_ptr<grpc::Service> MakeHealthService(HealthBoard* board) {
  return std::make_shared<HealthService>(board);
}

}  // namespace trireme::serve

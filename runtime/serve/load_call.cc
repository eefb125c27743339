#include "runtime/serve/load_call.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine.pb.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/grpc_status.h"
#include "runtime/serve/wire_values.h"

namespace trireme::serve {
namespace {

class LoadCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                       public StreamPump::Client,
                       public LiveCall,
                       public std::enable_shared_from_this<LoadCall> {
 public:
  explicit LoadCall(Door* door) : door_(door), id_(absl::StrCat("!", door->MakeRequestId())) {}

  void Start() {
    self_ = shared_from_this();
    if (absl::Status status = door_->watches().Add(id_, weak_from_this()); !status.ok()) {
      End(status);
      return;
    }
    door_->pump()->Wake(self_);
  }

  absl::Time Pump(absl::Time now) override {
    MutexLock lock(&mutex_);
    if (ended_) {
      return absl::InfiniteFuture();
    }
    if (!writing_) {
      Report(now);
    }
    return now + door_->options().load_report_min;
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) {
      FinishWith(absl::CancelledError("the client left"));
    }
  }

  void OnCancel() override { End(absl::CancelledError("the client cancelled the call")); }

  void End(const absl::Status& status) override {
    MutexLock lock(&mutex_);
    FinishWith(status);
  }

  void OnDone() override {
    const std::shared_ptr<LoadCall> self = std::move(self_);
    {
      // Whoever called Finish has left the lock.
      MutexLock lock(&mutex_);
    }
    door_->watches().Remove(id_);
  }

 private:
  void Report(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::LoadReport report;
    SetLoadReport(door_->replica(), door_->phase(), door_->journal().latency(), &report);
    std::string content = report.SerializeAsString();
    if (content == last_content_ && now - last_time_ < door_->options().load_report_max) {
      return;
    }
    last_content_ = std::move(content);
    last_time_ = now;
    report.set_report_seq(++report_seq_);
    write_buffer_ = BufferOf(report.SerializeAsString());
    writing_ = true;
    StartWrite(&write_buffer_);
  }

  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!ended_) {
      ended_ = true;
      Finish(ToGrpcStatus(status, ""));
    }
  }

  Door* const door_;
  const std::string id_;
  std::shared_ptr<LoadCall> self_;
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::string last_content_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t report_seq_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer write_buffer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartLoadCall(Door* door) {
  auto call = std::make_shared<LoadCall>(door);
  LoadCall* reactor = call.get();
  call->Start();
  return reactor;
}

}  // namespace trireme::serve

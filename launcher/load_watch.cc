#include "launcher/load_watch.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "engine.grpc.pb.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace trireme::launcher {
namespace {

constexpr absl::Duration kConnectAgain = absl::Milliseconds(200);

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

LoadView ViewOf(const v1::LoadReport& report) {
  const v1::RequestLatency& latency = report.request_latency();
  return {.running_sequences = report.running_sequences(),
          .waiting_requests = report.waiting_requests(),
          .queued_tokens = report.queued_tokens(),
          .kv_blocks_total = report.kv_blocks_total(),
          .kv_blocks_free = report.kv_blocks_free(),
          .step = report.step(),
          .prefill_tokens_per_second = report.prefill_tokens_per_second(),
          .step_time_p50 = FromProto(report.step_time_p50()),
          .step_time_p99 = FromProto(report.step_time_p99()),
          .latency_streams = latency.streams(),
          .first_token_p50 = FromProto(latency.first_token_p50()),
          .first_token_p99 = FromProto(latency.first_token_p99()),
          .token_p50 = FromProto(latency.token_p50()),
          .token_p99 = FromProto(latency.token_p99())};
}

class GrpcLoadWatch : public LoadWatch {
 public:
  GrpcLoadWatch(std::string address, OnLoad on_load)
      : address_(std::move(address)), on_load_(std::move(on_load)), thread_([this] { Run(); }) {}

  ~GrpcLoadWatch() override {
    {
      MutexLock lock(&mutex_);
      is_over_ = true;
      if (context_ != nullptr) {
        context_->TryCancel();
      }
      over_.SignalAll();
    }
    thread_.join();
  }

 private:
  void Run() {
    grpc::ChannelArguments arguments;
    arguments.SetInt("grpc.use_local_subchannel_pool", 1);
    arguments.SetInt("grpc.initial_reconnect_backoff_ms", 200);
    arguments.SetInt("grpc.max_reconnect_backoff_ms", 500);
    const auto stub = v1::Engine::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
    while (Watch(stub.get())) {
      MutexLock lock(&mutex_);
      if (!is_over_) {
        over_.WaitFor(&mutex_, kConnectAgain);
      }
    }
  }

  // One stream to its end; false when the watch is over.
  bool Watch(v1::Engine::Stub* stub) {
    grpc::ClientContext context;
    {
      MutexLock lock(&mutex_);
      if (is_over_) {
        return false;
      }
      context_ = &context;
    }
    const auto reader = stub->WatchLoad(&context, v1::WatchLoadRequest());
    v1::LoadReport report;
    while (reader->Read(&report)) {
      Take(report);
    }
    (void)reader->Finish();
    MutexLock lock(&mutex_);
    context_ = nullptr;
    return !is_over_;
  }

  void Take(const v1::LoadReport& report) {
    LoadView view = ViewOf(report);
    const absl::Time now = SteadyClock()->Now();
    const absl::Duration gap = now - last_time_;
    if (report.step() >= last_step_ && gap > absl::ZeroDuration() && gap < absl::Seconds(10)) {
      // Each running sequence gets a token a step.
      view.decode_tokens_per_second = static_cast<double>(report.step() - last_step_) *
                                      static_cast<double>(report.running_sequences()) /
                                      absl::ToDoubleSeconds(gap);
    }
    last_time_ = now;
    last_step_ = report.step();
    on_load_(report.epoch(), view);
  }

  const std::string address_;
  const OnLoad on_load_;
  // Of the thread.
  absl::Time last_time_ = absl::InfinitePast();
  uint64_t last_step_ = 0;

  Mutex mutex_;
  ConditionVariable over_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the running call
  std::thread thread_;  // last: it uses what stands above
};

}  // namespace

std::unique_ptr<LoadWatch> LoadWatch::Start(const std::string& address, OnLoad on_load) {
  return std::make_unique<GrpcLoadWatch>(address, std::move(on_load));
}

}  // namespace trireme::launcher

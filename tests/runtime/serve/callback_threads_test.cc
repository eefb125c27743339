#include "runtime/serve/callback_threads.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/health_board.h"
#include "runtime/serve/listener.h"

namespace trireme::serve {
namespace {

namespace health = grpc::health::v1;

struct Check {
  grpc::ClientContext context;
  health::HealthCheckRequest request;
  health::HealthCheckResponse response;
  grpc::Status status;
};

// Counts the threads on which calls of two channels, at once, end.
class Reactions {
 public:
  void Add() {
    MutexLock lock(&mutex_);
    threads_.insert(std::this_thread::get_id());
    ++count_;
    changed_.SignalAll();
  }
  std::set<std::thread::id> WaitFor(int count) {
    MutexLock lock(&mutex_);
    const auto all_ended = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return count_ == count; };
    EXPECT_TRUE(changed_.WaitFor(&mutex_, absl::Seconds(20), all_ended))
        << count_ << " of " << count << " calls have ended";
    return threads_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::set<std::thread::id> threads_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(CallbackThreads, ReactOnAsManyThreadsAsSaid) {
  KeepCallbackThreads();
  HealthBoard board;
  board.Set("", Health::kServing);
  ListenerOptions options;
  options.address = "127.0.0.1:0";
  options.request_bytes_max = 1 << 20;
  options.metadata_bytes_max = 16 << 10;
  options.concurrent_streams_max = 1000;
  options.memory_bytes_max = 64 << 20;
  options.handshake_timeout = absl::Seconds(3);
  const auto listener = Listener::Create(options, {MakeHealthService(&board)}).value();
  const auto stub = health::Health::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", listener->port()), grpc::InsecureChannelCredentials()));

  constexpr int kCalls = 400;
  std::deque<Check> checks(kCalls);
  Reactions reactions;
  for (Check& check : checks) {
    stub->async()->Check(&check.context, &check.request, &check.response,
                         [&](const grpc::Status& status) {
                           check.status = status;
                           reactions.Add();
                         });
  }
  const size_t threads = reactions.WaitFor(kCalls).size();
  for (const Check& check : checks) {
    EXPECT_TRUE(check.status.ok()) << check.status.error_message();
  }
  EXPECT_GE(threads, 1u);
  EXPECT_LE(threads, static_cast<size_t>(CallbackThreadCount()));
}

}  // namespace
}  // namespace trireme::serve

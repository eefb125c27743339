#include "runtime/serve/stream_pump.h"

#include <gtest/gtest.h>

#include <atomic>
#include "runtime/base/mutex.h"

namespace trireme::serve {
namespace {

class CountingClient final : public StreamPump::Client {
 public:
  explicit CountingClient(absl::Duration period) : period_(period) {}

  absl::Time Pump(absl::Time now) override {
    MutexLock lock(&mutex_);
    ++calls_;
    called_.SignalAll();
    return now + period_;
  }

  bool WaitForCalls(int calls) {
    MutexLock lock(&mutex_);
    return called_.WaitFor(&mutex_, absl::Seconds(10),
                           [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_ >= calls; });
  }

  int calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  const absl::Duration period_;
  Mutex mutex_;
  ConditionVariable called_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(StreamPump, CallsAClientThatWasWoken) {
  StreamPump pump(SteadyClock());
  auto client = std::make_shared<CountingClient>(absl::InfiniteDuration());
  pump.Wake(client);
  EXPECT_TRUE(client->WaitForCalls(1));
  pump.Wake(client);
  EXPECT_TRUE(client->WaitForCalls(2));
}

TEST(StreamPump, CallsAgainWhenTheTimeHasComeAndNotBefore) {
  StreamPump pump(SteadyClock());
  auto slow = std::make_shared<CountingClient>(absl::Hours(1));
  auto quick = std::make_shared<CountingClient>(absl::Milliseconds(5));
  pump.Wake(slow);
  pump.Wake(quick);
  EXPECT_TRUE(quick->WaitForCalls(5));
  EXPECT_EQ(slow->calls(), 1);
}

// A wake in between must neither lose the timer nor double it: within one period after n wakes
// there are at most n + 1 calls more than periods that passed.
TEST(StreamPump, WakesDoNotMultiplyTimers) {
  StreamPump pump(SteadyClock());
  auto client = std::make_shared<CountingClient>(absl::Milliseconds(50));
  const absl::Time start = SteadyClock()->Now();
  for (int index = 0; index < 20; ++index) {
    pump.Wake(client);
  }
  EXPECT_TRUE(client->WaitForCalls(8));
  const absl::Duration passed = SteadyClock()->Now() - start;
  EXPECT_LE(client->calls(), 20 + passed / absl::Milliseconds(50) + 1);
}

TEST(StreamPump, KeepsNoClientAliveForATimer) {
  StreamPump pump(SteadyClock());
  auto client = std::make_shared<CountingClient>(absl::Milliseconds(1));
  const std::weak_ptr<CountingClient> weak = client;
  pump.Wake(client);
  ASSERT_TRUE(client->WaitForCalls(3));
  client.reset();
  auto other = std::make_shared<CountingClient>(absl::Milliseconds(1));
  pump.Wake(other);
  ASSERT_TRUE(other->WaitForCalls(3));
  EXPECT_TRUE(weak.expired());
}

TEST(StreamPump, PumpHereCallsOnThisThreadAndKeepsTheTimer) {
  StreamPump pump(SteadyClock());
  const auto client = std::make_shared<CountingClient>(absl::Milliseconds(20));
  pump.PumpHere(client);
  EXPECT_GE(client->calls(), 1);
  EXPECT_TRUE(client->WaitForCalls(4));  // by the timer, set by the wake that followed
}

}  // namespace
}  // namespace trireme::serve

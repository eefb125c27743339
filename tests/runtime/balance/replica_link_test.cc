#include "runtime/balance/replica_link.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "runtime/base/error_reason.h"
#include "tests/support/fake_replica.h"

namespace trireme::balance {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

// Counts what it hears.
class Ear final : public ReplicaLinkListener, public AttemptListener {
 public:
  void OnLoadReport(const v1::LoadReport&) override { Add(&reports_); }
  void OnWatchLost() override { Add(&losses_); }
  void OnEvent(v1::ExecuteEvent&) override { Add(&events_); }
  void OnEnd(const AttemptEnd& end) override {
    absl::MutexLock lock(&mutex_);
    end_ = end;
    ++ends_;
  }

  bool WaitForReports(int count) { return Wait(&reports_, count); }
  bool WaitForLosses(int count) { return Wait(&losses_, count); }
  bool WaitForEvents(int count) { return Wait(&events_, count); }
  bool WaitForEnd() { return Wait(&ends_, 1); }
  int reports() {
    absl::MutexLock lock(&mutex_);
    return reports_;
  }
  int losses() {
    absl::MutexLock lock(&mutex_);
    return losses_;
  }
  AttemptEnd end() {
    absl::MutexLock lock(&mutex_);
    return end_;
  }

 private:
  void Add(int* count) {
    absl::MutexLock lock(&mutex_);
    ++*count;
  }
  bool Wait(const int* count, int wanted) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return *count >= wanted; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }

  absl::Mutex mutex_;
  int reports_ = 0;
  int losses_ = 0;
  int events_ = 0;
  int ends_ = 0;
  AttemptEnd end_;
};

// A link that is ticked as the forwarding controller would.
class TickedLink {
 public:
  TickedLink(const std::string& endpoint, Ear* ear, absl::Duration silence = absl::Seconds(3),
             int connections = 1) {
    link_ = ReplicaLink::Create({.name = "r1",
                                 .endpoint = endpoint,
                                 .lease = "l1",
                                 .connections = connections,
                                 .silence_limit = silence,
                                 .lease_period = absl::Milliseconds(20)},
                                ear, SteadyClock());
    thread_ = std::thread([this] {
      absl::MutexLock lock(&mutex_);
      while (!mutex_.AwaitWithTimeout(absl::Condition(&stopping_), absl::Milliseconds(5))) {
        link_->Tick(SteadyClock()->Now());
      }
    });
  }
  ~TickedLink() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }
  ReplicaLink& operator*() { return *link_; }

 private:
  std::unique_ptr<ReplicaLink> link_;
  absl::Mutex mutex_;
  bool stopping_ = false;
  std::thread thread_;
};

v1::ExecuteRequest Request() {
  v1::ExecuteRequest request;
  request.set_request_id("a");
  request.set_attempt(1);
  request.add_token_ids(1);
  request.add_choices();
  return request;
}

TEST(ReplicaLink, ReportsArriveAndALostWatchComesBack) {
  Ear ear;
  std::unique_ptr<FakeReplica> replica =
      FakeReplica::Start([](const auto&) { return FakeAnswer{.hangs = true}; });
  TickedLink link(replica->address(), &ear);
  ASSERT_TRUE(ear.WaitForReports(2));
  EXPECT_EQ(ear.losses(), 0);
  replica->Die();
  EXPECT_TRUE(ear.WaitForLosses(1));
}

TEST(ReplicaLink, AnAttemptBringsItsEventsAndItsEnd) {
  Ear ear;
  auto attempt = std::make_shared<Ear>();
  const auto replica = FakeReplica::Start(
      [](const auto& request) { return FakeAnswer{.events = HonestEvents(request, 3, true)}; });
  TickedLink link(replica->address(), &ear);
  (*link).Execute(Request(), absl::InfiniteFuture(), attempt);
  ASSERT_TRUE(attempt->WaitForEnd());
  EXPECT_TRUE(attempt->WaitForEvents(6));
  EXPECT_TRUE(attempt->end().status.ok()) << attempt->end().status;
}

TEST(ReplicaLink, WhatTheReplicaSaysKeepsItsReasonAndItsAdvice) {
  Ear ear;
  auto attempt = std::make_shared<Ear>();
  const auto replica = FakeReplica::Start([](const auto&) {
    return FakeAnswer{.status = WithReason(absl::UnavailableError("draining"), kReasonDraining)};
  });
  TickedLink link(replica->address(), &ear);
  (*link).Execute(Request(), absl::InfiniteFuture(), attempt);
  ASSERT_TRUE(attempt->WaitForEnd());
  EXPECT_EQ(attempt->end().status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(attempt->end().status), kReasonDraining);
  EXPECT_EQ(attempt->end().retry_delay, absl::Milliseconds(100));
}

TEST(ReplicaLink, AStatusWithoutDetailsMeansThatTheReplicaIsLost) {
  Ear ear;
  for (const absl::StatusCode code : {absl::StatusCode::kUnavailable, absl::StatusCode::kUnknown,
                                      absl::StatusCode::kInternal, absl::StatusCode::kCancelled}) {
    auto attempt = std::make_shared<Ear>();
    const auto replica = FakeReplica::Start([code](const auto&) {
      return FakeAnswer{.status = absl::Status(code, "x"), .is_bare = true};
    });
    TickedLink link(replica->address(), &ear);
    (*link).Execute(Request(), absl::InfiniteFuture(), attempt);
    ASSERT_TRUE(attempt->WaitForEnd());
    EXPECT_EQ(ReasonOf(attempt->end().status), kReasonReplicaLost) << attempt->end().status;
    EXPECT_EQ(attempt->end().status.code(), absl::StatusCode::kUnavailable);
  }
}

TEST(ReplicaLink, NobodyAtTheAddressIsALostReplica) {
  Ear ear;
  auto attempt = std::make_shared<Ear>();
  TickedLink link("127.0.0.1:1", &ear);
  (*link).Execute(Request(), absl::InfiniteFuture(), attempt);
  ASSERT_TRUE(attempt->WaitForEnd());
  EXPECT_EQ(ReasonOf(attempt->end().status), kReasonReplicaLost);
}

// Connections that were refused rest, each as long as it likes; a report means that they need not.
TEST(ReplicaLink, AReplicaThatIsBackIsReachedOnAllConnections) {
  constexpr int kConnections = 4;
  const auto honest = [](const auto& request) {
    return FakeAnswer{.events = HonestEvents(request, 1, true)};
  };
  auto replica = FakeReplica::Start(honest);
  const int port = replica->port();
  Ear ear;
  TickedLink link(replica->address(), &ear, absl::Seconds(3), kConnections);
  ASSERT_TRUE(ear.WaitForReports(1));
  replica->Die();
  ASSERT_TRUE(ear.WaitForLosses(1));
  // Long enough that the rests are near their longest.
  for (int turn = 0; turn < 15; ++turn) {
    for (int call = 0; call < kConnections; ++call) {
      auto refused = std::make_shared<Ear>();
      (*link).Execute(Request(), absl::InfiniteFuture(), refused);
      ASSERT_TRUE(refused->WaitForEnd());
      EXPECT_FALSE(refused->end().status.ok());
    }
    absl::SleepFor(absl::Milliseconds(100));
  }
  const int reports = ear.reports();
  replica = FakeReplica::Start(honest, port);
  ASSERT_TRUE(ear.WaitForReports(reports + 1));
  for (int call = 0; call < 2 * kConnections; ++call) {
    auto attempt = std::make_shared<Ear>();
    (*link).Execute(Request(), absl::InfiniteFuture(), attempt);
    ASSERT_TRUE(attempt->WaitForEnd());
    EXPECT_TRUE(attempt->end().status.ok()) << attempt->end().status;
  }
}

TEST(ReplicaLink, SilenceEndsTheWatchAndTheAttempts) {
  Ear ear;
  auto attempt = std::make_shared<Ear>();
  const auto replica = FakeReplica::Start([](const auto&) { return FakeAnswer{.hangs = true}; });
  TickedLink link(replica->address(), &ear, /*silence=*/absl::Milliseconds(300));
  ASSERT_TRUE(ear.WaitForReports(1));
  (*link).Execute(Request(), absl::InfiniteFuture(), attempt);
  replica->FallSilent();
  EXPECT_TRUE(ear.WaitForLosses(1));
  ASSERT_TRUE(attempt->WaitForEnd());
  EXPECT_EQ(ReasonOf(attempt->end().status), kReasonReplicaLost);
  EXPECT_TRUE(replica->WaitUntilCancelled(1, kPatience));
}

TEST(ReplicaLink, TheLeaseIsPingedWhileAnAttemptRuns) {
  Ear ear;
  auto attempt = std::make_shared<Ear>();
  const auto replica = FakeReplica::Start([](const auto&) { return FakeAnswer{.hangs = true}; });
  TickedLink link(replica->address(), &ear);
  ASSERT_TRUE(ear.WaitForReports(1));
  EXPECT_EQ(replica->lease_pings(), 0) << "nothing runs";
  const std::shared_ptr<SentAttempt> call =
      (*link).Execute(Request(), absl::InfiniteFuture(), attempt);
  EXPECT_TRUE(replica->WaitUntilPinged(kPatience));
  call->Cancel();
  EXPECT_TRUE(attempt->WaitForEnd());
}

}  // namespace
}  // namespace trireme::balance

#include "runtime/comm/control_link.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/comm/shm_communicator.h"
#include "runtime/comm/thread_communicator.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

// Something that happens once; made of what the thread sanitizer knows.
class Event {
 public:
  void Notify() {
    const std::lock_guard lock(mutex_);
    has_happened_ = true;
    condition_.notify_all();
  }
  bool HasBeenNotified() { return WaitForNotificationWithTimeout(absl::ZeroDuration()); }
  bool WaitForNotificationWithTimeout(absl::Duration timeout) {
    std::unique_lock lock(mutex_);
    return condition_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                               [this] { return has_happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool has_happened_ = false;
};

// One rank's link with what it reported.
struct Watched {
  std::atomic<int64_t> finished_step{0};
  std::atomic<bool> is_waiting{false};
  std::string report;  // set before Join
  Event has_lost;
  PeerLost lost;  // readable after has_lost
  std::mutex reports_mutex;
  std::map<int, std::string> reports;  // of each peer the last one
  std::unique_ptr<ControlLink> link;

  std::map<int, std::string> Reports() {
    const std::lock_guard lock(reports_mutex);
    return reports;
  }

  void Join(Communicator& world, const MonitorOptions& monitor) {
    ControlLinkOptions options;
    for (int rank = 0; rank < world.size(); ++rank) {
      options.places.push_back({.host = "host" + std::to_string(rank), .identity = "here"});
    }
    options.monitor = monitor;
    options.progress = [this] {
      return Progress{.finished_step = finished_step, .is_waiting = is_waiting};
    };
    options.report = [this] { return report; };
    options.on_report = [this](int rank, absl::string_view heard) {
      const std::lock_guard lock(reports_mutex);
      reports[rank] = std::string(heard);
    };
    options.on_lost = [this](const PeerLost& peer) {
      lost = peer;
      has_lost.Notify();
    };
    auto made = ControlLink::Create(world, std::move(options));
    ASSERT_TRUE(made.ok()) << made.status();
    link = *std::move(made);
  }
};

std::vector<std::unique_ptr<Watched>> MakeLinks(int size, const MonitorOptions& monitor = {}) {
  auto world = MakeThreadCommunicators(size);
  EXPECT_TRUE(world.ok());
  std::vector<std::unique_ptr<Watched>> links;
  for (int rank = 0; rank < size; ++rank) {
    links.push_back(std::make_unique<Watched>());
  }
  RunOnThreads(*world, [&](Communicator& communicator) {
    links[static_cast<size_t>(communicator.rank())]->Join(communicator, monitor);
  });
  return links;
}

constexpr absl::Duration kLong = absl::Seconds(20);

TEST(ControlLinkTest, AnOrderedEndIsNoLoss) {
  std::vector<std::unique_ptr<Watched>> links = MakeLinks(3);
  for (const size_t rank : {2, 0, 1}) {
    links[rank]->link->Leave(absl::OkStatus());
    links[rank]->link->Leave(absl::OkStatus());
  }
  for (const std::unique_ptr<Watched>& watched : links) {
    EXPECT_FALSE(watched->has_lost.HasBeenNotified());
  }
}

TEST(ControlLinkTest, AReasonGivenByARankReachesRankZero) {
  std::vector<std::unique_ptr<Watched>> links = MakeLinks(3);
  links[2]->link->Leave(absl::InternalError("blk.3 is broken"));
  ASSERT_TRUE(links[0]->has_lost.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(links[0]->lost.cause, LossCause::kFailed);
  EXPECT_EQ(links[0]->lost.rank, 2);
  EXPECT_EQ(links[0]->lost.host, "host2");
  EXPECT_NE(links[0]->lost.reason.find("blk.3 is broken"), std::string::npos);
  EXPECT_FALSE(links[1]->has_lost.HasBeenNotified());
}

TEST(ControlLinkTest, ALostRankZeroReachesAllOthers) {
  std::vector<std::unique_ptr<Watched>> links = MakeLinks(3);
  links[0]->link->Leave(absl::UnavailableError("rank=1 host=h step=9: gone"));
  for (const size_t rank : {1, 2}) {
    ASSERT_TRUE(links[rank]->has_lost.WaitForNotificationWithTimeout(kLong));
    EXPECT_EQ(links[rank]->lost.rank, 0);
    EXPECT_NE(links[rank]->lost.reason.find("rank=1 host=h step=9"), std::string::npos);
  }
}

TEST(ControlLinkTest, ShowsTheStepsOfItsPeers) {
  MonitorOptions monitor;
  monitor.heartbeat_period = absl::Milliseconds(20);
  std::vector<std::unique_ptr<Watched>> links = MakeLinks(3, monitor);
  links[2]->finished_step = 17;
  links[2]->is_waiting = true;
  const auto peer = [&links](int rank) {
    for (const PeerHealth& seen : links[0]->link->Peers()) {
      if (seen.rank == rank) {
        return seen;
      }
    }
    return PeerHealth();
  };
  const absl::Time deadline = absl::Now() + kLong;
  while (peer(2).finished_step != 17 && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(links[0]->link->Peers().size(), 2U);
  EXPECT_EQ(peer(2).finished_step, 17);
  EXPECT_TRUE(peer(2).is_waiting);
  EXPECT_EQ(peer(1).finished_step, 0);
  EXPECT_FALSE(peer(1).has_left);
}

TEST(ControlLinkTest, ReportsTravelWithHeartbeats) {
  auto world = MakeThreadCommunicators(3);
  ASSERT_TRUE(world.ok());
  MonitorOptions monitor;
  monitor.heartbeat_period = absl::Milliseconds(20);
  std::vector<Watched> links(3);
  const std::string longest(kControlReportBytesMax, '\xff');
  links[1].report = std::string("a\0b", 3);
  links[2].report = longest;
  RunOnThreads(*world, [&](Communicator& communicator) {
    links[static_cast<size_t>(communicator.rank())].Join(communicator, monitor);
  });
  const absl::Time deadline = absl::Now() + kLong;
  while (links[0].Reports().size() < 2 && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(links[0].Reports(),
            (std::map<int, std::string>{{1, std::string("a\0b", 3)}, {2, longest}}));
  EXPECT_TRUE(links[1].Reports().empty());  // rank 0 has none
}

TEST(ControlLinkTest, AStuckStepNamesTheRankThatDoesNotWait) {
  MonitorOptions monitor;
  monitor.heartbeat_period = absl::Milliseconds(20);
  monitor.stall_timeout = absl::Milliseconds(500);
  std::vector<std::unique_ptr<Watched>> links = MakeLinks(3, monitor);
  for (const std::unique_ptr<Watched>& watched : links) {
    watched->is_waiting = true;
  }
  links[2]->is_waiting = false;
  links[0]->link->SetIssuedStep(1);
  ASSERT_TRUE(links[0]->has_lost.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(links[0]->lost.cause, LossCause::kStalled);
  EXPECT_EQ(links[0]->lost.rank, 2);
}

// Rank 1 in a process of its own, which the parent may kill or stop.
class ControlLinkProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = MakeShmName();
    child_ = ::fork();
    if (child_ == 0) {
      RunChild(name);
    }
    auto world = MakeShmCommunicator({.name = name, .rank = 0, .size = 2});
    ASSERT_TRUE(world.ok()) << world.status();
    watched_.Join(**world, {});
    ASSERT_TRUE((*world)->Barrier().ok());
  }

  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  [[noreturn]] static void RunChild(const std::string& name) {
    auto world = MakeShmCommunicator({.name = name, .rank = 1, .size = 2});
    Watched watched;
    watched.finished_step = 17;
    watched.Join(**world, {});
    const bool is_ready = (*world)->Barrier().ok();
    watched.has_lost.WaitForNotificationWithTimeout(kLong);
    ::_exit(is_ready ? 69 : 1);
  }

  pid_t child_ = 0;
  Watched watched_;
};

TEST_F(ControlLinkProcessTest, AKilledRankIsNoticedWithinMilliseconds) {
  const absl::Time start = absl::Now();
  ::kill(child_, SIGKILL);
  ASSERT_TRUE(watched_.has_lost.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(watched_.lost.cause, LossCause::kClosed);
  EXPECT_EQ(watched_.lost.rank, 1);
  // 50 ms are promised; a loaded machine may take longer to run the thread, but a heartbeat that
  // stays out would take 2.5 s.
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
}

TEST_F(ControlLinkProcessTest, AStoppedRankIsNoticedWithinThreeSeconds) {
  absl::SleepFor(absl::Milliseconds(300));  // at least one heartbeat with the step
  const absl::Time start = absl::Now();
  ::kill(child_, SIGSTOP);
  ASSERT_TRUE(watched_.has_lost.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(watched_.lost.cause, LossCause::kSilent);
  EXPECT_EQ(watched_.lost.finished_step, 17);
  EXPECT_GT(absl::Now() - start, absl::Seconds(2));
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(3500));
}

TEST_F(ControlLinkProcessTest, AShortStopChangesNothing) {
  ::kill(child_, SIGSTOP);
  absl::SleepFor(absl::Milliseconds(800));
  ::kill(child_, SIGCONT);
  EXPECT_FALSE(watched_.has_lost.WaitForNotificationWithTimeout(absl::Seconds(3)));
}

TEST(ControlLinkTest, ARankLeavesWhenTheProcessOfRankZeroIsGone) {
  const std::string name = MakeShmName();
  const pid_t controller = ::fork();
  if (controller == 0) {
    auto world = MakeShmCommunicator({.name = name, .rank = 0, .size = 2});
    Watched watched;
    watched.Join(**world, {});
    const bool is_ready = (*world)->Barrier().ok();
    ::_exit(is_ready ? 0 : 1);  // no word of goodbye
  }
  auto world = MakeShmCommunicator({.name = name, .rank = 1, .size = 2});
  ASSERT_TRUE(world.ok()) << world.status();
  Watched watched;
  watched.Join(**world, {});
  ASSERT_TRUE((*world)->Barrier().ok());
  ASSERT_TRUE(watched.has_lost.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(watched.lost.cause, LossCause::kClosed);
  EXPECT_EQ(watched.lost.rank, 0);
  EXPECT_EQ(::waitpid(controller, nullptr, 0), controller);
}

}  // namespace
}  // namespace trireme::comm

#include "runtime/comm/control_monitor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace trireme::comm {
namespace {

// A monitor of rank 0 over ranks 1 to 3, whose time is moved by hand. Ticks come every 100 ms.
class ControlMonitorTest : public testing::Test {
 protected:
  ControlMonitorTest()
      : monitor_(MonitorOptions(), {.rank = 0, .host = "h0"},
                 {{.rank = 1, .host = "h1"}, {.rank = 2, .host = "h2"}, {.rank = 3, .host = "h3"}},
                 now_) {}

  // Lets `time` pass; ranks of `alive` send a heartbeat with their progress every 200 ms.
  void Pass(absl::Duration time, const std::vector<int>& alive) {
    for (absl::Duration passed; passed < time; passed += absl::Milliseconds(100)) {
      now_ += absl::Milliseconds(100);
      ++ticks_;
      for (const int rank : alive) {
        if (rank == 0 || ticks_ % 2 == 0) {
          monitor_.OnProgress(rank, progress_[rank], now_);
        }
      }
      monitor_.OnTick(now_);
    }
  }

  // Events as text: "suspect 2", "recovered 2", "lost 2 cause step".
  std::string Events() {
    std::string text;
    for (const ControlEvent& event : monitor_.TakeEvents()) {
      static constexpr const char* kKinds[] = {"suspect", "recovered", "lost"};
      static constexpr const char* kCauses[] = {"closed", "failed", "silent", "stalled"};
      absl::StrAppend(&text, text.empty() ? "" : ", ", kKinds[static_cast<int>(event.kind)], " ",
                      event.peer.rank);
      if (event.kind == ControlEvent::Kind::kLost) {
        absl::StrAppend(&text, " ", kCauses[static_cast<int>(event.peer.cause)], " ",
                        event.peer.finished_step);
        reason_ = std::string(event.peer.ToStatus().message());
      }
    }
    return text;
  }

  absl::Time now_ = absl::UnixEpoch();
  int ticks_ = 0;
  Progress progress_[4];
  ControlMonitor monitor_;
  std::string reason_;
};

TEST_F(ControlMonitorTest, SaysWhatItKnowsOfEachPeer) {
  progress_[1] = {.finished_step = 5, .is_waiting = true};
  Pass(absl::Milliseconds(200), {0, 1, 2, 3});
  const absl::Time last_heard = now_;
  monitor_.OnClosed(3, "gone");
  Pass(absl::Milliseconds(1200), {0, 2});
  const std::vector<PeerHealth> peers = monitor_.Peers();
  ASSERT_EQ(peers.size(), 3U);
  EXPECT_EQ(peers[0].rank, 1);
  EXPECT_EQ(peers[0].finished_step, 5);
  EXPECT_EQ(peers[0].last_heard, last_heard);
  EXPECT_TRUE(peers[0].is_waiting);
  EXPECT_TRUE(peers[0].is_suspect);
  EXPECT_EQ(peers[1].last_heard, now_);
  EXPECT_FALSE(peers[1].is_suspect);
  EXPECT_FALSE(peers[1].has_left);
  EXPECT_TRUE(peers[2].has_left);
}

TEST_F(ControlMonitorTest, IsQuietWhileAllAreAlive) {
  Pass(absl::Minutes(10), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "");
}

TEST_F(ControlMonitorTest, AShortSilenceIsOnlySuspect) {
  Pass(absl::Milliseconds(1300), {0, 1, 3});
  EXPECT_EQ(Events(), "suspect 2");
  Pass(absl::Milliseconds(400), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "recovered 2");
}

TEST_F(ControlMonitorTest, AStoppedRankIsLostWithinThreeSeconds) {
  progress_[2].finished_step = 17;
  Pass(absl::Seconds(1), {0, 1, 2, 3});
  Pass(absl::Milliseconds(2200), {0, 1, 3});
  EXPECT_EQ(Events(), "suspect 2");
  Pass(absl::Milliseconds(800), {0, 1, 3});
  EXPECT_EQ(Events(), "lost 2 silent 17");
  EXPECT_NE(reason_.find("rank=2 host=h2 step=17: no heartbeat for 2"), std::string::npos)
      << reason_;
}

TEST_F(ControlMonitorTest, AClosedConnectionIsALossAtOnce) {
  monitor_.OnClosed(3, "its process ended");
  EXPECT_EQ(Events(), "lost 3 closed 0");
}

TEST_F(ControlMonitorTest, OnlyTheFirstLossIsReported) {
  monitor_.OnClosed(3, "its process ended");
  monitor_.OnClosed(1, "its process ended");
  Pass(absl::Seconds(5), {0});
  EXPECT_EQ(Events(), "lost 3 closed 0, suspect 2");
}

TEST_F(ControlMonitorTest, AnOrderedEndIsNoLoss) {
  monitor_.OnLeaving(1, absl::OkStatus());
  monitor_.OnClosed(1, "its process ended");
  Pass(absl::Seconds(5), {0, 2, 3});
  EXPECT_EQ(Events(), "");
}

TEST_F(ControlMonitorTest, ARankThatSaysWhyItEndsIsBelieved) {
  monitor_.OnLeaving(1, absl::InternalError("tensor blk.3 is broken"));
  monitor_.OnClosed(1, "its process ended");
  EXPECT_EQ(Events(), "lost 1 failed 0");
  EXPECT_NE(reason_.find("tensor blk.3 is broken"), std::string::npos);
}

TEST_F(ControlMonitorTest, TimeInWhichWeWereStoppedIsNotHeldAgainstThePeers) {
  Pass(absl::Seconds(1), {0, 1, 2, 3});
  now_ += absl::Seconds(30);  // our own process was stopped, or the whole machine
  monitor_.OnTick(now_);
  Pass(absl::Seconds(1), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "");
  Pass(absl::Seconds(3), {0, 1, 3});
  EXPECT_EQ(Events(), "suspect 2, lost 2 silent 0");
}

TEST_F(ControlMonitorTest, ASlowTickStillFindsADeadPeer) {
  // Every look comes 800 ms late, so each counts as one heartbeat period: found after 12 of them.
  for (int look = 0; look < 12; ++look) {
    now_ += absl::Milliseconds(800);
    for (const int rank : {0, 1, 3}) {
      monitor_.OnProgress(rank, {}, now_);
    }
    monitor_.OnTick(now_);
  }
  EXPECT_EQ(Events(), "suspect 2, lost 2 silent 0");
}

TEST_F(ControlMonitorTest, AnIdleReplicaNeverStalls) {
  for (Progress& progress : progress_) {
    progress.finished_step = 5;
  }
  monitor_.OnIssuedStep(5, now_);
  Pass(absl::Milliseconds(200), {0, 1, 2, 3});
  Pass(absl::Hours(1), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "");
}

TEST_F(ControlMonitorTest, AStepThatDoesNotFinishNamesTheRankThatComputes) {
  // Rank 2 hangs in its computation, so ranks 1 and 3 wait for it in a sum, and rank 0 as well.
  for (Progress& progress : progress_) {
    progress = {.finished_step = 8, .is_waiting = true};
  }
  progress_[2].is_waiting = false;
  Pass(absl::Seconds(1), {0, 1, 2, 3});
  monitor_.OnIssuedStep(9, now_);
  Pass(absl::Milliseconds(9800), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "");
  Pass(absl::Milliseconds(400), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "lost 2 stalled 8");
  EXPECT_NE(reason_.find("step 9"), std::string::npos) << reason_;
}

TEST_F(ControlMonitorTest, TheRankFurthestBehindIsTheCulprit) {
  // Stage 1 (rank 3) hangs; the ranks before it finish what is in flight and then wait.
  for (Progress& progress : progress_) {
    progress = {.finished_step = 8, .is_waiting = true};
  }
  progress_[3].finished_step = 7;
  Pass(absl::Seconds(1), {0, 1, 2, 3});
  monitor_.OnIssuedStep(10, now_);
  Pass(absl::Seconds(11), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "lost 3 stalled 7");
}

TEST_F(ControlMonitorTest, OurOwnStuckStepIsFoundToo) {
  for (Progress& progress : progress_) {
    progress = {.finished_step = 1, .is_waiting = true};
  }
  progress_[0].is_waiting = false;
  Pass(absl::Seconds(1), {0, 1, 2, 3});
  monitor_.OnIssuedStep(2, now_);
  Pass(absl::Seconds(11), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "lost 0 stalled 1");
}

TEST_F(ControlMonitorTest, SlowStepsAreNoStall) {
  // Steps of 4 s: the stall time becomes 200 s.
  for (int step = 1; step <= 5; ++step) {
    monitor_.OnIssuedStep(step, now_);
    Pass(absl::Seconds(4), {0, 1, 2, 3});
    for (Progress& progress : progress_) {
      progress.finished_step = step;
    }
    Pass(absl::Milliseconds(200), {0, 1, 2, 3});
  }
  monitor_.OnIssuedStep(6, now_);
  Pass(absl::Seconds(150), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "");
  Pass(absl::Seconds(100), {0, 1, 2, 3});
  EXPECT_EQ(Events(), "lost 0 stalled 5");
}

TEST(PeerLostTest, TheStatusNamesHostRankAndStep) {
  PeerLost lost = {.cause = LossCause::kClosed,
                   .rank = 2,
                   .host = "n1",
                   .finished_step = 17,
                   .reason = "its process ended"};
  EXPECT_EQ(lost.ToStatus(), absl::UnavailableError("rank=2 host=n1 step=17: its process ended"));
  lost.cause = LossCause::kStalled;
  EXPECT_EQ(lost.ToStatus().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace trireme::comm

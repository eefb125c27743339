#include "launcher/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace trireme::launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = SupervisorAction::Kind;

constexpr int kReplica = 0;
constexpr int kSecond = 1;
constexpr int kBalancer = 2;

ChildSpec Replica(const std::string& name) {
  return {.name = name,
          .kind = ChildKind::kReplica,
          .ranks = 2,
          .phases = {{"launch", absl::Seconds(60)},
                     {"connect", absl::Seconds(45)},
                     {"load", absl::Minutes(15)},
                     {"warmup", absl::Minutes(2)}},
          .silence = absl::Seconds(5)};
}

ChildSpec Balancer() {
  return {.name = "balancer1",
          .kind = ChildKind::kBalancer,
          .ranks = 1,
          .phases = {{"launch", absl::Seconds(60)}},
          .silence = absl::Seconds(3)};
}

// Drives a fleet of two replicas and a balancer, and remembers what it was told to do: "start 0 1"
// (child, epoch), "signal 0 15", "sweep 0", "late 0 launch 1", "serving", "finish 0".
class SupervisorTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(0); }

  void Make(uint64_t last_epoch) {
    fleet_ = std::make_unique<Supervisor>(
        std::vector<ChildSpec>{Replica("r1"), Replica("r2"), Balancer()}, last_epoch, /*seed=*/7,
        now_);
  }

  std::vector<std::string> Take() {
    std::vector<std::string> done;
    for (const SupervisorAction& action : fleet_->TakeActions()) {
      const std::string child = std::to_string(action.child);
      switch (action.kind) {
        case Kind::kStart:
          done.push_back("start " + child + " " + std::to_string(action.epoch));
          break;
        case Kind::kSignal:
          done.push_back("signal " + child + " " + std::to_string(action.signal));
          break;
        case Kind::kSweep:
          done.push_back("sweep " + child);
          break;
        case Kind::kLate: {
          std::string text = "late " + child + " " + action.text;
          for (const int rank : action.ranks) {
            text += " " + std::to_string(rank);
          }
          done.push_back(text);
          break;
        }
        case Kind::kReport:
          reports_ += action.text + "\n";
          break;
        case Kind::kFleetServing:
          done.push_back("serving");
          break;
        case Kind::kFinish:
          done.push_back("finish " + std::to_string(static_cast<int>(action.code)));
          break;
      }
    }
    return done;
  }

  // Lets time pass as a caller does that ticks four times a second, all children being well.
  void Pass(absl::Duration duration, const std::vector<int>& alive = {0, 1, 2}) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += absl::Milliseconds(250);
      for (const int child : alive) {
        fleet_->OnReport(child, now_);
      }
      fleet_->OnTick(now_);
    }
  }

  void Sweep(int child) { fleet_->OnSwept(child, absl::OkStatus(), now_); }

  void Serve(int child) {
    for (int rank = 0; rank < fleet_->spec(child).ranks; ++rank) {
      for (const StartPhase& phase : fleet_->spec(child).phases) {
        fleet_->OnPhase(child, rank, phase.name, now_);
      }
    }
    fleet_->OnServing(child, now_);
  }

  void ServeAll() {
    for (int child = 0; child < 3; ++child) {
      Sweep(child);
    }
    for (int child = 0; child < 3; ++child) {
      Serve(child);
    }
    Take();
  }

  void End(int child, int code) {
    fleet_->OnExited(child, code, "why", now_);
    Sweep(child);
  }

  ChildState State(int child) const { return fleet_->status(child).state; }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::unique_ptr<Supervisor> fleet_;
  std::string reports_;
};

TEST_F(SupervisorTest, NothingStartsBeforeTheLastRunIsSweptAway) {
  EXPECT_THAT(Take(), ElementsAre("sweep 0", "sweep 1", "sweep 2"));
  Pass(absl::Seconds(5));
  EXPECT_THAT(Take(), IsEmpty());
  Sweep(kReplica);
  EXPECT_THAT(Take(), ElementsAre("start 0 1"));
}

TEST_F(SupervisorTest, EpochsGoOnAfterThoseOfTheLastRun) {
  Make(41);
  Sweep(kSecond);
  Sweep(kReplica);
  EXPECT_THAT(Take(), ElementsAre("sweep 0", "sweep 1", "sweep 2", "start 1 42", "start 0 43"));
}

TEST_F(SupervisorTest, TheFleetServesWithItsBalancersAndOneReplica) {
  for (int child = 0; child < 3; ++child) {
    Sweep(child);
  }
  Take();
  Serve(kReplica);
  EXPECT_THAT(Take(), Not(Contains("serving")));
  Serve(kBalancer);
  EXPECT_THAT(Take(), Contains("serving"));
  Serve(kSecond);
  EXPECT_THAT(Take(), Not(Contains("serving")));
}

TEST_F(SupervisorTest, AReplicaThatDiesStartsAgainAfterASweepAndABackoff) {
  ServeAll();
  fleet_->OnExited(kReplica, 137, "rank=1 was killed", now_);
  EXPECT_THAT(Take(), ElementsAre("sweep 0"));
  EXPECT_THAT(reports_, HasSubstr("ended epoch=1 code=137 reason=\"rank=1 was killed\""));
  Sweep(kReplica);
  EXPECT_EQ(State(kReplica), ChildState::kWaiting);
  EXPECT_THAT(Take(), IsEmpty());
  Pass(absl::Seconds(1.5));  // at most 1.25 s
  EXPECT_THAT(Take(), ElementsAre("start 0 4"));
  EXPECT_EQ(fleet_->status(kReplica).restarts, 1);
}

TEST_F(SupervisorTest, NoNewEpochWhileAnOldOneMayLiveBehindACutLink) {
  ServeAll();
  fleet_->OnExited(kReplica, 69, "lost", now_);
  Take();
  for (int attempt = 0; attempt < 3; ++attempt) {
    fleet_->OnSwept(kReplica, absl::UnavailableError("host=node-b cannot be asked"), now_);
    EXPECT_THAT(Take(), IsEmpty());
    Pass(absl::Seconds(2.5));
    EXPECT_THAT(Take(), ElementsAre("sweep 0"));
  }
  EXPECT_THAT(reports_, HasSubstr("cannot start again yet reason=\"host=node-b"));
  Sweep(kReplica);
  Pass(absl::Seconds(1.5));
  EXPECT_THAT(Take(), ElementsAre("start 0 4"));
}

TEST_F(SupervisorTest, AFailureThatCannotGetBetterIsNotTriedAgain) {
  ServeAll();
  End(kReplica, 65);
  EXPECT_EQ(State(kReplica), ChildState::kFailed);
  Pass(absl::Minutes(5));
  EXPECT_THAT(Take(), ElementsAre("sweep 0"));
  EXPECT_EQ(State(kSecond), ChildState::kServing);
}

TEST_F(SupervisorTest, WithoutAReplicaLeftTheFleetEndsWithTheirCode) {
  ServeAll();
  End(kReplica, 66);
  End(kSecond, 72);
  EXPECT_THAT(Take(), ElementsAre("sweep 0", "sweep 1", "signal 2 10"));
  End(kBalancer, 0);
  EXPECT_THAT(Take(), ElementsAre("sweep 2", "finish 72"));
}

TEST_F(SupervisorTest, EndingByItselfWithCodeZeroIsNoFailure) {
  ServeAll();
  for (int round = 0; round < 8; ++round) {
    End(kReplica, 0);
    Pass(absl::Seconds(1.25));
    ASSERT_EQ(State(kReplica), ChildState::kStarting) << round;
    Serve(kReplica);
  }
}

TEST_F(SupervisorTest, EachPhaseHasItsDeadlineAndNamesTheRanksThatAreLate) {
  Sweep(kReplica);
  fleet_->OnPhase(kReplica, 0, "launch", now_);
  fleet_->OnPhase(kReplica, 1, "launch", now_);
  Pass(absl::Seconds(59));
  fleet_->OnPhase(kReplica, 0, "connect", now_);
  fleet_->OnPhase(kReplica, 1, "connect", now_);
  Pass(absl::Seconds(30));
  fleet_->OnPhase(kReplica, 0, "load", now_);
  Take();
  Pass(absl::Seconds(14));
  EXPECT_THAT(Take(), IsEmpty());
  Pass(absl::Seconds(2));  // 46 s of "connect"
  EXPECT_THAT(Take(), ElementsAre("late 0 connect 1", "sweep 0"));
  End(kReplica, 137);
  EXPECT_EQ(fleet_->status(kReplica).exit_code, 75);
  EXPECT_THAT(fleet_->status(kReplica).reason, HasSubstr("start phase=connect"));
}

TEST_F(SupervisorTest, ARankThatWasNotHeardOfIsLateInTheLaunch) {
  Sweep(kReplica);
  fleet_->OnPhase(kReplica, 1, "launch", now_);
  Take();
  Pass(absl::Seconds(61));
  EXPECT_THAT(Take(), Contains("late 0 launch 0 1"));
}

TEST_F(SupervisorTest, ASilentChildIsKilledAndASlowSupervisorBlamesNobody) {
  ServeAll();
  now_ += absl::Minutes(1);  // this process was stopped
  fleet_->OnTick(now_);
  EXPECT_THAT(Take(), IsEmpty());
  Pass(absl::Seconds(4.5), {1, 2});
  EXPECT_THAT(Take(), IsEmpty());
  Pass(absl::Seconds(1), {1, 2});
  EXPECT_THAT(Take(), ElementsAre("sweep 0"));
  EXPECT_THAT(reports_, HasSubstr("replica=r1 is killed reason=\"no sign of life for 5s"));
  End(kReplica, 137);
  EXPECT_EQ(fleet_->status(kReplica).exit_code, 69);
}

TEST_F(SupervisorTest, ALostReplicaWhoseLauncherStaysIsEnded) {
  ServeAll();
  fleet_->OnLost(kReplica, "rank=2 host=node-b is silent", now_);
  EXPECT_THAT(Take(), IsEmpty());
  Pass(absl::Seconds(5.5));
  EXPECT_THAT(Take(), ElementsAre("sweep 0"));
  End(kReplica, 69);
  EXPECT_EQ(fleet_->status(kReplica).exit_code, 69);  // not that of our kill
}

TEST_F(SupervisorTest, ADrainedReplicaStaysDownAndCanBeStartedAgain) {
  ServeAll();
  ASSERT_TRUE(fleet_->Drain(kReplica, /*restart=*/false, now_).ok());
  EXPECT_THAT(Take(), ElementsAre("signal 0 10"));
  EXPECT_EQ(State(kReplica), ChildState::kDraining);
  End(kReplica, 0);
  EXPECT_EQ(State(kReplica), ChildState::kStopped);
  Pass(absl::Minutes(5));
  EXPECT_THAT(Take(), ElementsAre("sweep 0"));
  ASSERT_TRUE(fleet_->Drain(kReplica, /*restart=*/true, now_).ok());
  Sweep(kReplica);
  EXPECT_THAT(Take(), ElementsAre("sweep 0", "start 0 4"));
}

TEST_F(SupervisorTest, ADrainThatHangsIsKilled) {
  ServeAll();
  ASSERT_TRUE(fleet_->Drain(kReplica, /*restart=*/false, now_).ok());
  Take();
  Pass(absl::Seconds(2 + 120 + 9));
  EXPECT_THAT(Take(), IsEmpty());
  Pass(absl::Seconds(2));
  EXPECT_THAT(Take(), ElementsAre("sweep 0"));
}

TEST_F(SupervisorTest, ARollingRestartHasOneChildDownAtATime) {
  ServeAll();
  ASSERT_TRUE(fleet_->RestartAll(now_).ok());
  EXPECT_FALSE(fleet_->RestartAll(now_).ok());
  uint64_t epoch = 4;
  for (const int child : {kReplica, kSecond, kBalancer}) {
    const std::string name = std::to_string(child);
    EXPECT_THAT(Take(), ElementsAre("signal " + name + " 10"));
    End(child, 0);
    EXPECT_THAT(Take(),
                ElementsAre("sweep " + name, "start " + name + " " + std::to_string(epoch++)));
    Pass(absl::Seconds(30));
    EXPECT_THAT(Take(), IsEmpty());
    Serve(child);
  }
  Pass(absl::Seconds(30));
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(SupervisorTest, ARollingRestartStopsAtAChildThatFails) {
  ServeAll();
  ASSERT_TRUE(fleet_->RestartAll(now_).ok());
  End(kReplica, 0);
  End(kReplica, 65);
  Take();
  Pass(absl::Seconds(10));
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(State(kSecond), ChildState::kServing);
  EXPECT_THAT(reports_, HasSubstr("the rolling restart stops"));
}

TEST_F(SupervisorTest, AStopDrainsBalancersThenReplicas) {
  ServeAll();
  fleet_->Stop(now_);
  EXPECT_THAT(Take(), ElementsAre("signal 2 10"));
  Pass(absl::Seconds(1));
  EXPECT_THAT(Take(), IsEmpty());
  End(kBalancer, 0);
  EXPECT_THAT(Take(), ElementsAre("sweep 2", "signal 0 10", "signal 1 10"));
  End(kReplica, 0);
  End(kSecond, 0);
  EXPECT_THAT(Take(), ElementsAre("sweep 0", "sweep 1", "finish 0"));
}

TEST_F(SupervisorTest, ASecondStopEndsNowAndAThirdKills) {
  ServeAll();
  fleet_->Stop(now_);
  fleet_->Stop(now_);
  EXPECT_THAT(Take(), ElementsAre("signal 2 10", "signal 0 15", "signal 1 15", "signal 2 15"));
  fleet_->Stop(now_);
  EXPECT_THAT(Take(), ElementsAre("sweep 0", "sweep 1", "sweep 2"));
  for (int child = 0; child < 3; ++child) {
    End(child, 137);
  }
  EXPECT_THAT(Take(), Contains("finish 0"));
}

TEST_F(SupervisorTest, AStopDoesNotWaitForANodeThatCannotBeAsked) {
  ServeAll();
  End(kBalancer, 0);  // waits for its backoff
  fleet_->Stop(now_);
  Take();
  for (const int child : {kReplica, kSecond}) {
    fleet_->OnExited(child, 0, "", now_);
    fleet_->OnSwept(child, absl::UnavailableError("host=node-b cannot be asked"), now_);
  }
  EXPECT_THAT(Take(), Contains("finish 0"));
}

TEST_F(SupervisorTest, NothingStartsWhileTheFleetStops) {
  ServeAll();
  fleet_->Stop(now_);
  Take();
  End(kReplica, 137);
  Pass(absl::Minutes(2), {0, 1, 2});
  for (const std::string& action : Take()) {
    EXPECT_THAT(action, Not(HasSubstr("start")));
  }
  EXPECT_FALSE(fleet_->Drain(kSecond, /*restart=*/true, now_).ok());
}

}  // namespace
}  // namespace trireme::launcher

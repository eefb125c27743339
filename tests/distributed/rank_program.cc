// One rank of an MPI job that runs one scenario of mpi_communicator_test.cc and prints
// "holds rank=R SCENARIO" when what it expects holds, else what does not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/comm/control_link.h"
#include "runtime/comm/groups.h"
#include "runtime/comm/message.h"
#include "runtime/comm/mpi_communicator.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

std::unique_ptr<Communicator> AllRanks(MpiWorld& world, int tag) {
  std::vector<int> members(static_cast<size_t>(world.size()));
  std::iota(members.begin(), members.end(), 0);
  return world.MakeGroup(std::move(members), tag);
}

double ProcessCpuSeconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void RunConformance(MpiWorld& world) {
  int tag = 100;
  for (const ConformanceCase& conformance_case : ConformanceCases()) {
    if (!conformance_case.ends_group && world.size() >= conformance_case.ranks_min) {
      SCOPED_TRACE(conformance_case.name);
      conformance_case.run(*AllRanks(world, tag++));
    }
  }
}

bool RunEndingCase(MpiWorld& world, const std::string& name) {
  for (const ConformanceCase& conformance_case : ConformanceCases()) {
    if (conformance_case.ends_group && name == conformance_case.name) {
      conformance_case.run(*AllRanks(world, 100));
      return true;
    }
  }
  return false;
}

// Groups of the opposite order of ranks, and of half of them, keep apart from each other.
void RunSubsets(MpiWorld& world) {
  std::vector<int> backwards(static_cast<size_t>(world.size()));
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  const std::unique_ptr<Communicator> reversed = world.MakeGroup(backwards, 7);
  EXPECT_EQ(reversed->rank(), world.size() - 1 - world.rank());
  float value = static_cast<float>(world.rank());
  ASSERT_TRUE(reversed->Broadcast({reinterpret_cast<std::byte*>(&value), sizeof(value)}, 0).ok());
  EXPECT_EQ(value, static_cast<float>(world.size() - 1));
  const int first = world.rank() / 2 * 2;
  const std::unique_ptr<Communicator> pair = world.MakeGroup({first, first + 1}, 8);
  float sum = static_cast<float>(world.rank());
  ASSERT_TRUE(pair->AllReduceSum(absl::MakeSpan(&sum, 1)).ok());
  EXPECT_EQ(sum, static_cast<float>(2 * first + 1));
}

// A plan goes out on control, partial sums within a stage, activations to the next stage, the
// result back to rank 0.
void RunGroups(MpiWorld& world, int tensor_ranks, PipelineTransport transport) {
  const auto groups = MakeProcessGroups(
      world, {.layout = {.tensor_ranks = tensor_ranks, .stages = world.size() / tensor_ranks},
              .host = "",
              .interface = "",
              .pipeline = transport});
  ASSERT_TRUE(groups.ok()) << groups.status();
  for (int step = 1; step <= 20; ++step) {
    std::string plan = groups->rank == 0 ? absl::StrFormat("%d", step) : "";
    ASSERT_TRUE(BroadcastMessage(*groups->control, 0, 100, plan).ok());
    std::vector<float> values(5000, 0.0F);
    const absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(values.data()),
                                      values.size() * sizeof(float));
    if (groups->previous_rank.has_value()) {
      ASSERT_TRUE(groups->pipeline->Receive(*groups->previous_rank, bytes).ok());
    }
    for (float& value : values) {
      value += static_cast<float>(groups->rank * std::atoi(plan.c_str()));
    }
    ASSERT_TRUE(groups->tensor->AllReduceSum(absl::MakeSpan(values)).ok());
    if (groups->next_rank.has_value()) {
      ASSERT_TRUE(groups->pipeline->Send(*groups->next_rank, bytes).ok());
    }
    // x(s) = tensor_ranks * x(s - 1) + step * (sum of the stage's rank numbers), x(-1) = 0.
    float want = 0.0F;
    for (int stage = 0; stage <= groups->layout.StageOf(groups->rank); ++stage) {
      want *= static_cast<float>(tensor_ranks);
      for (int index = 0; index < tensor_ranks; ++index) {
        want += static_cast<float>(step * groups->layout.RankOf(stage, index));
      }
    }
    ASSERT_EQ(values.front(), want);
    ASSERT_EQ(values.back(), want);
  }
}

// All ranks but 0 wait for a plan that comes late.
void RunIdle(MpiWorld& world) {
  const auto groups = MakeProcessGroups(
      world, {.layout = {.tensor_ranks = 1, .stages = world.size()}, .host = "", .interface = ""});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_TRUE(groups->control->Barrier().ok());
  constexpr double kIdleSeconds = 2.0;
  const double before = ProcessCpuSeconds();
  std::string plan;
  if (groups->rank == 0) {
    absl::SleepFor(absl::Seconds(kIdleSeconds));
    plan = "plan";
  }
  ASSERT_TRUE(BroadcastMessage(*groups->control, 0, 100, plan).ok());
  // An idle rank may use 2 % of a core.
  EXPECT_LT(ProcessCpuSeconds() - before, 0.02 * kIdleSeconds);
}

// The last rank dies without a word while the others wait in all kinds of groups.
void RunKill(MpiWorld& world) {
  auto groups = MakeProcessGroups(
      world, {.layout = {.tensor_ranks = 1, .stages = world.size()}, .host = "", .interface = ""});
  ASSERT_TRUE(groups.ok()) << groups.status();
  Notification has_lost;
  absl::Time lost_time;
  PeerLost lost;
  ControlLinkOptions options;
  options.places = groups->places;
  options.progress = [] { return Progress{.finished_step = 3, .is_waiting = false}; };
  options.on_lost = [&](const PeerLost& peer) {
    lost = peer;
    lost_time = absl::Now();
    groups->Abort(peer.ToStatus());
    has_lost.Notify();
  };
  auto link = ControlLink::Create(*groups->control, std::move(options));
  ASSERT_TRUE(link.ok()) << link.status();
  ASSERT_TRUE(groups->control->Barrier().ok());
  const int last = world.size() - 1;
  if (groups->rank == last) {
    absl::SleepFor(absl::Milliseconds(600));
    ::kill(::getpid(), SIGKILL);
  }
  std::byte byte{};
  const absl::Status status = groups->pipeline->Receive(last, absl::MakeSpan(&byte, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(has_lost.HasBeenNotified());
  if (groups->rank == 0) {
    EXPECT_EQ(lost.rank, last);
    EXPECT_EQ(lost.finished_step, 3);
    EXPECT_EQ(lost.cause, LossCause::kClosed);
    EXPECT_LT(absl::Now() - lost_time, absl::Milliseconds(200));
    (*link)->Leave(lost.ToStatus());
  } else {
    EXPECT_EQ(lost.rank, 0);
    EXPECT_NE(lost.reason.find(absl::StrFormat("rank=%d", last)), std::string::npos);
  }
}

// True when the scenario leaves MPI usable, so that it is ended in order.
absl::StatusOr<bool> RunScenario(MpiWorld& world, const std::string& name) {
  if (name == "conformance") {
    RunConformance(world);
    return true;
  }
  if (name == "subsets") {
    RunSubsets(world);
    return true;
  }
  int tensor_ranks = 0;
  if (name.rfind("groups", 0) == 0 && absl::SimpleAtoi(name.substr(6, 1), &tensor_ranks)) {
    RunGroups(world, tensor_ranks,
              name.size() > 7 ? PipelineTransport::kTcp : PipelineTransport::kMpi);
    return true;
  }
  if (name == "idle") {
    RunIdle(world);
    return true;
  }
  if (name == "kill") {
    RunKill(world);
    return false;
  }
  if (RunEndingCase(world, name)) {
    return false;
  }
  return absl::InvalidArgumentError("unknown scenario " + name);
}

int RunRank(const std::string& scenario) {
  auto world = MpiWorld::Create();
  if (!world.ok()) {
    std::printf("fails: %s\n", world.status().ToString().c_str());
    return 1;
  }
  const absl::StatusOr<bool> is_usable = RunScenario(**world, scenario);
  const bool holds = is_usable.ok() && !testing::Test::HasFailure();
  // One write a line, so that the lines of several ranks do not mix.
  const std::string line =
      absl::StrFormat("%s rank=%d %s %s\n", holds ? "holds" : "fails", (*world)->rank(), scenario,
                      is_usable.status().ToString());
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) {
    return 1;
  }
  if (is_usable.ok() && *is_usable && holds) {
    return (*world)->Finish().ok() ? 0 : 1;
  }
  absl::SleepFor(absl::Milliseconds(300));  // mpirun ends the others after the first that goes
  ::_exit(holds ? 69 : 1);
}

// Runs the scenario as a test, so that EXPECT and ASSERT print and count.
class ScenarioTest : public testing::Test {
 public:
  explicit ScenarioTest(std::string scenario) : scenario_(std::move(scenario)) {}
  void TestBody() override { exit_code = RunRank(scenario_); }

  static int exit_code;

 private:
  const std::string scenario_;
};

int ScenarioTest::exit_code = 1;

}  // namespace
}  // namespace trireme::comm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string scenario = argc > 1 ? argv[1] : "none";
  testing::RegisterTest(
      "Scenario", "Runs", nullptr, nullptr, __FILE__, __LINE__,
      [scenario]() -> testing::Test* { return new trireme::comm::ScenarioTest(scenario); });
  testing::GTEST_FLAG(filter) = "Scenario.*";
  testing::GTEST_FLAG(brief) = true;
  const int failed = RUN_ALL_TESTS();
  return failed != 0 ? failed : trireme::comm::ScenarioTest::exit_code;
}

#include "tests/support/faulty_communicator.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "runtime/comm/thread_communicator.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

std::vector<std::unique_ptr<Communicator>> MakeGroup(int size, FaultPlan plan) {
  auto inner = MakeThreadCommunicators(size);
  EXPECT_TRUE(inner.ok()) << inner.status();
  std::vector<std::unique_ptr<Communicator>> group;
  for (std::unique_ptr<Communicator>& communicator : *inner) {
    group.push_back(std::make_unique<FaultyCommunicator>(std::move(communicator), plan));
    plan.seed += 1;
    plan.fault_at_verb = 0;  // rank 0 alone is faulty
  }
  return group;
}

std::vector<std::unique_ptr<Communicator>> MakeSlowGroup(int size) {
  return MakeGroup(size, {.delay_max = absl::Microseconds(200)});
}

INSTANTIATE_TEST_SUITE_P(Faulty, ConformanceTest,
                         testing::Values(ConformanceParameter{"Slow", 2, MakeSlowGroup},
                                         ConformanceParameter{"Slow", 4, MakeSlowGroup}),
                         ConformanceTest::Name);

TEST(FaultyCommunicatorTest, FailsAtItsVerbAndEndsTheGroup) {
  auto group = MakeGroup(3, {.fault_at_verb = 3});
  RunOnThreads(group, [](Communicator& communicator) {
    EXPECT_TRUE(communicator.Barrier().ok());
    EXPECT_TRUE(communicator.Barrier().ok());
    EXPECT_EQ(communicator.Barrier(), absl::UnavailableError("injected fault"));
  });
}

TEST(FaultyCommunicatorTest, HangsUntilItIsAborted) {
  auto group = MakeGroup(2, {.fault_at_verb = 1, .fault = FaultPlan::Fault::kHang});
  const absl::Status reason = absl::DeadlineExceededError("stuck");
  std::thread rescuer([&group, &reason] {
    while (!group[1]->IsWaiting()) {
      std::this_thread::yield();
    }
    group[0]->Abort(reason);
  });
  RunOnThreads(
      group, [&reason](Communicator& communicator) { EXPECT_EQ(communicator.Barrier(), reason); });
  rescuer.join();
}

}  // namespace
}  // namespace trireme::comm

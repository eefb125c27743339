#include "runtime/comm/self_communicator.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

std::vector<std::unique_ptr<Communicator>> MakeGroup(int) {
  std::vector<std::unique_ptr<Communicator>> group;
  group.push_back(MakeSelfCommunicator());
  return group;
}

INSTANTIATE_TEST_SUITE_P(Self, ConformanceTest,
                         testing::Values(ConformanceParameter{"Self", 1, MakeGroup}),
                         ConformanceTest::Name);

TEST(SelfCommunicatorTest, EveryVerbReturnsTheReasonAfterAnAbort) {
  const std::unique_ptr<Communicator> self = MakeSelfCommunicator();
  ASSERT_TRUE(self->Barrier().ok());
  const absl::Status reason = absl::UnavailableError("the replica ends");
  self->Abort(reason);
  EXPECT_EQ(self->Barrier(), reason);
  EXPECT_EQ(self->AllReduceSum({}), reason);
  EXPECT_EQ(self->AllGather({}, {}), reason);
  EXPECT_EQ(self->Broadcast({}, 0), reason);
}

}  // namespace
}  // namespace trireme::comm

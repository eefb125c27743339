#include "runtime/comm/thread_communicator.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

std::vector<std::unique_ptr<Communicator>> MakeGroup(int size) {
  auto group = MakeThreadCommunicators(size);
  EXPECT_TRUE(group.ok()) << group.status();
  return *std::move(group);
}

INSTANTIATE_TEST_SUITE_P(Thread, ConformanceTest,
                         testing::Values(ConformanceParameter{"Thread", 1, MakeGroup},
                                         ConformanceParameter{"Thread", 2, MakeGroup},
                                         ConformanceParameter{"Thread", 3, MakeGroup},
                                         ConformanceParameter{"Thread", 4, MakeGroup},
                                         ConformanceParameter{"Thread", 8, MakeGroup}),
                         ConformanceTest::Name);

TEST(ThreadCommunicatorTest, RefusesSizesOutsideItsRange) {
  for (const int size : {-1, 0, 65, 1 << 30}) {
    EXPECT_EQ(MakeThreadCommunicators(size).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ThreadCommunicatorTest, AnAbortOfOneRankWakesAllOthers) {
  std::vector<std::unique_ptr<Communicator>> group = MakeGroup(4);
  const absl::Status reason = absl::UnavailableError("rank 3 gave up");
  RunOnThreads(group, [&reason](Communicator& communicator) {
    if (communicator.rank() == 3) {
      communicator.Abort(reason);
    } else {
      EXPECT_EQ(communicator.Barrier(), reason);
    }
  });
}

TEST(ThreadCommunicatorTest, NamesBothVerbsWhenRanksDiverge) {
  std::vector<std::unique_ptr<Communicator>> group = MakeGroup(2);
  RunOnThreads(group, [](Communicator& communicator) {
    absl::Status status;
    if (communicator.rank() == 0) {
      status = communicator.Barrier();
    } else {
      std::vector<float> values(10);
      status = communicator.AllReduceSum(absl::MakeSpan(values));
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_NE(status.message().find("Barrier"), std::string::npos) << status;
    EXPECT_NE(status.message().find("AllReduceSum of 40 bytes"), std::string::npos) << status;
  });
}

}  // namespace
}  // namespace trireme::comm

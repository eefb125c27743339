#include <gtest/gtest.h>

#include "runtime/comm/mpi_communicator.h"

namespace trireme::comm {
namespace {

TEST(MpiAbsentTest, ABuildWithoutMpiSaysHowToGetIt) {
  EXPECT_FALSE(IsStartedByMpi());
  EXPECT_EQ(RankBeforeMpi(), 0);
  const auto world = MpiWorld::Create();
  EXPECT_EQ(world.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(world.status().message().find("TRIREME_WITH_MPI"), std::string::npos);
}

}  // namespace
}  // namespace trireme::comm

// Starts jobs of rank_program under mpirun and counts the ranks for which its scenario holds.
#include "runtime/comm/mpi_communicator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace trireme::comm {
namespace {

struct JobResult {
  int exit_code = -1;
  std::string output;
  int ranks_that_hold = 0;
};

JobResult RunJob(int ranks, const std::string& scenario) {
  // mpirun answers a rank that ends in disorder by ending the others; `timeout` is for hangs.
  const std::string command =
      absl::StrFormat("timeout 120 %s --allow-run-as-root --oversubscribe -n %d %s %s 2>&1",
                      TRIREME_MPIEXEC, ranks, TRIREME_RANK_PROGRAM, scenario);
  JobResult result;
  FILE* const pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> bytes;
  for (size_t count = 1; count > 0;) {
    count = std::fread(bytes.data(), 1, bytes.size(), pipe);
    result.output.append(bytes.data(), count);
  }
  const int status = ::pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (int rank = 0; rank < ranks; ++rank) {
    result.ranks_that_hold +=
        absl::StrContains(result.output, absl::StrFormat("holds rank=%d %s", rank, scenario)) ? 1
                                                                                              : 0;
  }
  return result;
}

void ExpectHolds(int ranks, const std::string& scenario) {
  const JobResult result = RunJob(ranks, scenario);
  EXPECT_EQ(result.ranks_that_hold, ranks) << result.output;
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

// The scenario ends the use of MPI, so the ranks leave without it and mpirun calls that a failure.
void ExpectHoldsToItsEnd(int ranks, int ranks_that_live, const std::string& scenario) {
  const JobResult result = RunJob(ranks, scenario);
  EXPECT_EQ(result.ranks_that_hold, ranks_that_live) << result.output;
}

TEST(MpiCommunicatorTest, TwoRanksConform) { ExpectHolds(2, "conformance"); }
TEST(MpiCommunicatorTest, ThreeRanksConform) { ExpectHolds(3, "conformance"); }
TEST(MpiCommunicatorTest, FourRanksConform) { ExpectHolds(4, "conformance"); }

TEST(MpiCommunicatorTest, AnAbortWakesAReceiver) {
  ExpectHoldsToItsEnd(2, 2, "AbortWakesAReceiver");
}
TEST(MpiCommunicatorTest, AnAbortWakesACollective) {
  ExpectHoldsToItsEnd(4, 4, "AbortWakesACollective");
}
TEST(MpiCommunicatorTest, RanksThatDivergeAreNoticed) {
  ExpectHoldsToItsEnd(2, 2, "SeesThatRanksDiverged");
}

TEST(MpiCommunicatorTest, GroupsOfSomeRanksKeepApart) { ExpectHolds(4, "subsets"); }

TEST(ProcessGroupsTest, CarryAStepOverTensorRanks) { ExpectHolds(2, "groups2"); }
TEST(ProcessGroupsTest, CarryAStepOverStages) { ExpectHolds(3, "groups1"); }
TEST(ProcessGroupsTest, CarryAStepOverTensorRanksAndStages) { ExpectHolds(4, "groups2"); }
TEST(ProcessGroupsTest, CarryAStepOverStagesJoinedByTcp) { ExpectHolds(4, "groups2tcp"); }
TEST(ProcessGroupsTest, ARankThatWaitsForAPlanCostsNothing) { ExpectHolds(2, "idle"); }

TEST(ControlLinkTest, AKilledRankEndsTheWaitsOfAllOthers) { ExpectHoldsToItsEnd(4, 3, "kill"); }

}  // namespace
}  // namespace trireme::comm

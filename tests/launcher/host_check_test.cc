#include "launcher/host_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/time/time.h"

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMebi = 1 << 20;

HostNeeds Needs() {
  return {.version = "trireme 1",
          .model_fingerprint = 7,
          .model_host = "a",
          .model_path = "/m",
          .memory_bytes = 100 * kMebi,
          .cores = {0, 1},
          .threads = 2,
          .all_threads = 66,
          .shared_memory_bytes = 10 * kMebi,
          .open_files = 200};
}

// Just enough of everything.
HostReport Report() {
  return {.host = "b",
          .version = "trireme 1",
          .model_fingerprint = 7,
          .memory_available_bytes = 100 * kMebi,
          .cores = {0, 1},
          .shared_memory_free_bytes = 10 * kMebi,
          .open_files_max = 200,
          .threads_max = 66,
          .ports = {{"b:1", ""}}};
}

std::vector<Finding> FindingsOf(const HostReport& report,
                                absl::Duration clock_error = absl::ZeroDuration()) {
  return JudgeHost(Needs(), report, clock_error);
}

void ExpectOne(const HostReport& report, ExitCode code, const std::string& text) {
  const std::vector<Finding> findings = FindingsOf(report);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, code);
  EXPECT_THAT(findings[0].text, HasSubstr(text));
  EXPECT_TRUE(findings[0].is_error);
  EXPECT_FALSE(findings[0].fix.empty());
}

TEST(HostCheckTest, JustEnoughIsEnough) { EXPECT_TRUE(FindingsOf(Report()).empty()); }

TEST(HostCheckTest, EachLackIsOneFindingWithItsNumbers) {
  HostReport report = Report();
  report.version = "trireme 2";
  ExpectOne(report, ExitCode::kRankDisagreement, "has \"trireme 2\", this host \"trireme 1\"");
  report = Report();
  report.model_fingerprint = 8;
  ExpectOne(report, ExitCode::kRankDisagreement, "another model there than on a");
  report = Report();
  report.model_error = "/m: no such file";
  report.model_error_code = 66;
  ExpectOne(report, ExitCode::kMissingFile, "/m: no such file");
  report = Report();
  report.memory_available_bytes = 99 * kMebi;
  ExpectOne(report, ExitCode::kDoesNotFit, "need 100.0 MiB, it has 99.0 MiB");
  report = Report();
  report.cores = {0, 2};
  ExpectOne(report, ExitCode::kBadConfiguration, "core 1 cannot be used there; it has 0,2");
  report = Report();
  report.ports["b:1"] = "Address already in use";
  ExpectOne(report, ExitCode::kPortUnavailable, "cannot listen at b:1: Address already in use");
}

TEST(HostCheckTest, E15_LimitsAreNamedWithTheValueNeeded) {
  HostReport report = Report();
  report.shared_memory_free_bytes = 9 * kMebi;
  ExpectOne(report, ExitCode::kOsError, "/dev/shm has 9.0 MiB free, its ranks need 10.0 MiB");
  report = Report();
  report.open_files_max = 64;
  ExpectOne(report, ExitCode::kOsError, "may open 64 files, 200 are needed");
  report = Report();
  report.threads_max = 40;
  ExpectOne(report, ExitCode::kOsError, "40 threads may run there, 66 are needed");
}

TEST(HostCheckTest, SlowThingsAndWrongClocksAreWarnings) {
  HostNeeds needs = Needs();
  needs.threads = 3;
  const std::vector<Finding> slow = JudgeHost(needs, Report(), absl::ZeroDuration());
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_FALSE(slow[0].is_error);
  EXPECT_THAT(slow[0].text, HasSubstr("3 threads on 2 cores"));
  const std::vector<Finding> late = FindingsOf(Report(), absl::Seconds(-90));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_FALSE(late[0].is_error);
  EXPECT_EQ(late[0].text, "its clock is 1m30s behind");
  EXPECT_TRUE(FindingsOf(Report(), absl::Seconds(1)).empty());
}

TEST(HostCheckTest, SharedMemoryGrowsWithTheRanksOfAStage) {
  EXPECT_EQ(SharedMemoryOfStage(1), 5 * kMebi);  // Open MPI's alone
  // Two slots of 256 KiB for each rank, and a ring of 64 KiB for each pair, at least.
  EXPECT_GT(SharedMemoryOfStage(2), 2 * 5 * kMebi + 4 * 256 * 1024 + 4 * 64 * 1024);
  EXPECT_GT(OpenFilesOfRank(8), OpenFilesOfRank(2));
  EXPECT_GT(OpenFilesOfRank(1), 64);
}

}  // namespace
}  // namespace trireme::launcher

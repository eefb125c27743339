#include "launcher/process_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;

// A folder of control groups.
class Groups {
 public:
  explicit Groups(const std::string& name)
      : folder_(std::filesystem::path(::testing::TempDir()) / name) {
    std::filesystem::remove_all(folder_);
  }
  ~Groups() { std::filesystem::remove_all(folder_); }

  void Set(const std::string& group, const std::string& most, const std::string& current) {
    std::filesystem::create_directories(folder_ / group);
    std::ofstream(folder_ / group / "pids.max") << most << "\n";
    std::ofstream(folder_ / group / "pids.current") << current << "\n";
  }
  std::string mount() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

TEST(ProcessLimitsTest, E15_TheTightestGroupAroundAProcessCounts) {
  Groups groups("trireme_groups_v2");
  groups.Set("system.slice", "100", "90");
  groups.Set("system.slice/trireme.service", "50", "7");
  EXPECT_EQ(ThreadsOfGroups("0::/system.slice/trireme.service\n", groups.mount()), 10);
  EXPECT_EQ(ThreadsOfGroups("0::/other\n", groups.mount()), INT64_MAX);
}

TEST(ProcessLimitsTest, E15_TheFirstVersionHasAMountOfItsOwnAndMaxIsNoLimit) {
  Groups groups("trireme_groups_v1");
  groups.Set("pids/docker/a", "64", "60");
  groups.Set("pids/docker/b", "max", "60");
  EXPECT_EQ(ThreadsOfGroups("9:name=systemd:/\n8:pids:/docker/a\n0::/\n", groups.mount()), 4);
  EXPECT_EQ(ThreadsOfGroups("8:pids:/docker/b\n", groups.mount()), INT64_MAX);
  EXPECT_EQ(ThreadsOfGroups("", groups.mount()), INT64_MAX);
  EXPECT_EQ(ThreadsOfGroups("no such line", groups.mount()), INT64_MAX);
}

TEST(ProcessLimitsTest, E15_WhatCannotBeIsSaidWithBothNumbers) {
  EXPECT_TRUE(RaiseOpenFiles(1).ok());
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);  // raised
  EXPECT_TRUE(CheckThreads(1).ok());
  if (ThreadsMax() < INT64_MAX) {
    EXPECT_THAT(std::string(CheckThreads(INT64_MAX).message()),
                HasSubstr(std::to_string(INT64_MAX) + " are needed"));
  }
  EXPECT_GT(ThreadsOfProcess(4), ThreadsOfProcess(1));
}

}  // namespace
}  // namespace trireme::launcher

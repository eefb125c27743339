#include "launcher/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;

std::string FreshFolder(const std::string& name) {
  const std::string path = ::testing::TempDir() + name;
  std::filesystem::remove_all(path);
  return path;
}

TEST(RunFolderTest, ASecondSupervisorIsRefusedUntilTheFirstIsGone) {
  const std::string path = FreshFolder("run_folder_lock/deep");
  auto first = RunFolder::Open(path);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RunFolder::Open(path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().message(), HasSubstr("process " + std::to_string(::getpid())));
  first->reset();
  EXPECT_TRUE(RunFolder::Open(path).ok());
}

TEST(RunFolderTest, TheEpochOutlivesTheSupervisor) {
  const std::string path = FreshFolder("run_folder_epoch");
  {
    const auto folder = RunFolder::Open(path);
    ASSERT_TRUE(folder.ok());
    EXPECT_EQ((*folder)->last_epoch(), 0u);
    ASSERT_TRUE((*folder)->StoreEpoch(17).ok());
  }
  EXPECT_EQ((*RunFolder::Open(path))->last_epoch(), 17u);
}

TEST(RunFolderTest, OnlyThisUserMayLookIn) {
  const std::string path = FreshFolder("run_folder_mode");
  const auto folder = RunFolder::Open(path);
  ASSERT_TRUE(folder.ok());
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST(RunFolderTest, ThePlaceFollowsFromTheFile) {
  topology::ClusterFile file;
  file.name = "prod";
  file.observe.admin = "unix:/run/t/admin.sock";
  EXPECT_EQ(RunFolderOf(file), "/run/t");
  EXPECT_EQ(FleetAdminAddress(file), "unix:/run/t/admin.sock");
  file.observe.admin.clear();
  EXPECT_THAT(RunFolderOf(file), HasSubstr("prod"));
  EXPECT_EQ(FleetAdminAddress(file), "unix:" + RunFolderOf(file) + "/admin.sock");
}

}  // namespace
}  // namespace trireme::launcher

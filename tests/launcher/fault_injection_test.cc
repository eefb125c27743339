#include "launcher/fault_injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;

TEST(FaultInjectionTest, ReadsWhatToDoAndWhere) {
  const auto now = ParseFault("exit 3\n");
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->action, "exit");
  EXPECT_EQ(now->code, 3);
  EXPECT_EQ(now->point, "");
  const auto later = ParseFault("block at decode");
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->action, "block");
  EXPECT_EQ(later->point, "decode");
}

TEST(FaultInjectionTest, NamesTheWordThatIsWrong) {
  for (const std::string text :
       {"", "expire", "exit", "exit x", "exit 256", "exit -1", "stop 3", "block at",
        "block at home", "block in decode", "stop at load now"}) {
    const auto fault = ParseFault(text);
    EXPECT_TRUE(absl::IsInvalidArgument(fault.status())) << text;
    EXPECT_THAT(fault.status().message(), HasSubstr(absl::StrCat("\"", text, "\""))) << text;
  }
}

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/fault_injection_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void Write(const std::string& text) {
    std::ofstream(folder_ + "/new") << text;
    std::filesystem::rename(folder_ + "/new", folder_ + "/rank-2");
  }

  std::string folder_;
};

TEST_F(FolderTest, AFaultHappensOnceAtItsPointAndAtItsRank) {
  FaultInjection faults(folder_, 2);
  FaultInjection other_rank(folder_, 1);
  Write("fail at decode");
  EXPECT_TRUE(faults.Reach("prefill").ok());
  EXPECT_TRUE(other_rank.Reach("decode").ok());
  EXPECT_TRUE(absl::IsInternal(faults.Reach("decode")));
  EXPECT_TRUE(faults.Reach("decode").ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/rank-2.done"));
}

TEST_F(FolderTest, AFaultWithoutAPointHappensByItself) {
  FaultInjection faults(folder_, 2);
  Notification aborted;
  int code = 0;
  faults.SetAbort([&](int with) {
    code = with;
    aborted.Notify();
  });
  Write("abort 42");
  aborted.WaitForNotification();
  EXPECT_EQ(code, 42);
}

TEST_F(FolderTest, WithoutAFolderNothingHappens) {
  FaultInjection none("", 2);
  Write("fail at decode");
  EXPECT_FALSE(none.enabled());
  EXPECT_TRUE(none.Reach("decode").ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/rank-2"));
}

using FaultInjectionDeathTest = FolderTest;

TEST_F(FaultInjectionDeathTest, ExitEndsTheProcessWithItsCode) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Write("exit 3 at load");
  EXPECT_EXIT(
      {
        FaultInjection faults(folder_, 2);
        (void)faults.Reach("load");
      },
      testing::ExitedWithCode(3), "fault injected: exit 3 at load");
}

}  // namespace
}  // namespace trireme::launcher

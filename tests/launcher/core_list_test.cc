#include "launcher/core_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CoreListTest, NeighboursAreARange) {
  EXPECT_EQ(CoreListText({}), "");
  EXPECT_EQ(CoreListText({4}), "4");
  EXPECT_EQ(CoreListText({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
}

TEST(CoreListTest, TextIsReadBack) {
  EXPECT_THAT(*ParseCoreList("0-2,8"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*ParseCoreList(""), ElementsAre());
}

TEST(CoreListTest, WhatIsNoListIsNamed) {
  for (const char* text : {"x", "3-1", "-1", "1-2-3", "1024", "0,,1"}) {
    EXPECT_THAT(ParseCoreList(text).status().message(), HasSubstr("is no core")) << text;
  }
}

TEST(CoreListTest, ABoundThreadMayUseOnlyItsCores) {
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) {
      ++first;
    }
    ASSERT_TRUE(BindToCores({first}).ok());
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(CPU_COUNT(&allowed), 1);
    EXPECT_TRUE(CPU_ISSET(first, &allowed));
  }).join();
}

TEST(CoreListTest, ACoreThatDoesNotExistIsRefused) {
  EXPECT_THAT(BindToCores({1023}).message(), HasSubstr("core 1023"));
}

}  // namespace
}  // namespace trireme::launcher

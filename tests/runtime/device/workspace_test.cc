#include "runtime/device/workspace.h"

#include <gtest/gtest.h>

#include <vector>

namespace trireme::device {
namespace {

TEST(WorkspaceCutterTest, CountsAndPlacesAlike) {
  WorkspaceCutter counter(nullptr);
  EXPECT_EQ(counter.Take<float>(3), nullptr);
  EXPECT_EQ(counter.Take<std::byte>(65), nullptr);
  EXPECT_EQ(counter.used_bytes(), 64 + 128);

  std::vector<std::byte> memory(counter.used_bytes());
  WorkspaceCutter cutter(memory.data());
  EXPECT_EQ(reinterpret_cast<std::byte*>(cutter.Take<float>(3)), memory.data());
  EXPECT_EQ(cutter.Take<std::byte>(65), memory.data() + 64);
  EXPECT_EQ(cutter.used_bytes(), counter.used_bytes());
}

}  // namespace
}  // namespace trireme::device

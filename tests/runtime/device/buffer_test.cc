#include "runtime/device/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

namespace trireme::device {
namespace {

TEST(DeviceBufferTest, IsAlignedZeroedAndWritable) {
  const auto buffer = DeviceBuffer::Create(5'000'001, "a test");
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (2 << 20), 0u);
  EXPECT_EQ(buffer->data()[5'000'000], std::byte{0});
  std::memset(buffer->data(), 1, 5'000'001);
  EXPECT_EQ(buffer->size_bytes(), 5'000'001);
}

TEST(DeviceBufferTest, MovesAndLeavesNothingBehind) {
  auto buffer = DeviceBuffer::Create(100, "a test");
  ASSERT_TRUE(buffer.ok());
  std::byte* const data = buffer->data();
  const DeviceBuffer moved = *std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(buffer->data(), nullptr);
}

TEST(DeviceBufferTest, RefusesMoreThanTheHostHasAndSaysHowMuchThatIs) {
  const absl::Status status =
      DeviceBuffer::Create(int64_t{1} << 60, "the weights of rank 3").status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  const std::string text(status.message());
  EXPECT_NE(text.find("the weights of rank 3 needs 1152921504606846976 bytes"), std::string::npos)
      << text;
}

TEST(DeviceBufferTest, NothingTakesNothing) {
  const auto buffer = DeviceBuffer::Create(0, "a test");
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_GT(AvailableMemoryBytes(), 0);
}

}  // namespace
}  // namespace trireme::device

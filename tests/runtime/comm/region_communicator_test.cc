#include "runtime/comm/region_communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace trireme::comm {
namespace {

// The verbs are held to their contract in thread_ and shm_communicator_test; here is what those
// kinds cannot bring about.

std::shared_ptr<std::byte> ZeroMemory(int ranks) {
  const auto bytes = static_cast<size_t>(Region::Bytes(ranks));
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  std::memset(static_cast<void*>(memory), 0, bytes);
  return {memory, std::free};
}

TEST(RegionCommunicatorTest, APeerThatCannotAnswerEndsTheWait) {
  const std::shared_ptr<std::byte> memory = ZeroMemory(2);
  int asked_about = -1;
  RegionCommunicator communicator(Region(memory, 2), 0, [&asked_about](int peer) {
    asked_about = peer;
    return absl::UnavailableError("peer is gone");
  });
  EXPECT_EQ(communicator.Barrier(), absl::UnavailableError("peer is gone"));
  EXPECT_EQ(asked_about, 1);
}

TEST(RegionCommunicatorTest, AShortSendReturnsBeforeTheReceive) {
  const std::shared_ptr<std::byte> memory = ZeroMemory(2);
  RegionCommunicator sender(Region(memory, 2), 0, nullptr);
  RegionCommunicator receiver(Region(memory, 2), 1, nullptr);
  const std::byte sent[] = {std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE(sender.Send(1, sent).ok());
  std::byte received[3] = {};
  ASSERT_TRUE(receiver.Receive(0, absl::MakeSpan(received)).ok());
  EXPECT_EQ(std::memcmp(sent, received, 3), 0);
}

TEST(RegionCommunicatorTest, PositionsOfARingWrapWithTheirCounter) {
  const std::shared_ptr<std::byte> memory = ZeroMemory(2);
  Region region(memory, 2);
  constexpr uint32_t kNearTheWrap = 0xffffff00U;
  region.ring(0, 1).written.value = kNearTheWrap;
  region.ring(0, 1).read.value = kNearTheWrap;
  RegionCommunicator sender(Region(memory, 2), 0, nullptr);
  RegionCommunicator receiver(Region(memory, 2), 1, nullptr);
  std::vector<std::byte> sent(3 * static_cast<size_t>(kRingBytes));
  for (size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<std::byte>(i * 7 + i / 253);
  }
  std::thread sending([&] { EXPECT_TRUE(sender.Send(1, sent).ok()); });
  std::vector<std::byte> received(sent.size());
  EXPECT_TRUE(receiver.Receive(0, absl::MakeSpan(received)).ok());
  sending.join();
  EXPECT_TRUE(received == sent);
}

}  // namespace
}  // namespace trireme::comm

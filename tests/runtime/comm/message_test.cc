#include "runtime/comm/message.h"

#include <gtest/gtest.h>

#include "runtime/comm/thread_communicator.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

void OnGroup(int size, const std::function<void(Communicator&)>& body) {
  auto group = MakeThreadCommunicators(size);
  ASSERT_TRUE(group.ok()) << group.status();
  RunOnThreads(*group, body);
}

TEST(MessageTest, ArrivesWithItsSize) {
  OnGroup(2, [](Communicator& communicator) {
    if (communicator.rank() == 0) {
      EXPECT_TRUE(SendMessage(communicator, 1, "a plan").ok());
      EXPECT_TRUE(SendMessage(communicator, 1, "").ok());
    } else {
      std::string message = "left over from before";
      EXPECT_TRUE(ReceiveMessage(communicator, 0, 6, message).ok());
      EXPECT_EQ(message, "a plan");
      EXPECT_TRUE(ReceiveMessage(communicator, 0, 0, message).ok());
      EXPECT_EQ(message, "");
    }
  });
}

TEST(MessageTest, AnAnnouncementOverTheLimitIsRefused) {
  OnGroup(2, [](Communicator& communicator) {
    if (communicator.rank() == 0) {
      const int64_t length = int64_t{1} << 60;
      EXPECT_TRUE(
          communicator.Send(1, {reinterpret_cast<const std::byte*>(&length), sizeof(length)}).ok());
    } else {
      std::string message;
      const absl::Status status = ReceiveMessage(communicator, 0, 1000, message);
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      EXPECT_EQ(communicator.Barrier(), status);
    }
  });
}

TEST(MessageTest, BroadcastReplacesWhatTheOthersHad) {
  OnGroup(3, [](Communicator& communicator) {
    std::string message = communicator.rank() == 1 ? "from rank 1" : "something longer than that";
    EXPECT_TRUE(BroadcastMessage(communicator, 1, 100, message).ok());
    EXPECT_EQ(message, "from rank 1");
  });
}

TEST(MessageTest, GatherKeepsTheOrderOfRanks) {
  OnGroup(4, [](Communicator& communicator) {
    const std::string mine(static_cast<size_t>(communicator.rank()),
                           static_cast<char>('a' + communicator.rank()));
    const auto all = GatherMessages(communicator, mine, 10);
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(*all, (std::vector<std::string>{"", "b", "cc", "ddd"}));
  });
}

}  // namespace
}  // namespace trireme::comm

#include "runtime/comm/peer_communicator.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace trireme::comm {
namespace {

// The verbs are held to their contract in tcp_communicator_test and tests/distributed; here the
// pattern of messages is looked at, which the lost or wasted time of a network depends on.
class Recorder final : public PeerCommunicator {
 public:
  Recorder(int own_rank, int ranks) : PeerCommunicator(own_rank, ranks) {}
  void Abort(absl::Status) override {}
  bool IsWaiting() const override { return false; }

  std::string Take() { return std::exchange(transfers_, ""); }

 protected:
  absl::Status Transfer(absl::Span<const Outgoing> sends,
                        absl::Span<const Incoming> receives) override {
    for (const Outgoing& send : sends) {
      absl::StrAppend(&transfers_, ">", send.peer, ":", send.bytes.size());
    }
    for (const Incoming& receive : receives) {
      absl::StrAppend(&transfers_, "<", receive.peer, ":", receive.bytes.size());
    }
    absl::StrAppend(&transfers_, ";");
    return absl::OkStatus();
  }
  absl::Status State() const override { return absl::OkStatus(); }

 private:
  std::string transfers_;
};

TEST(PeerCommunicatorTest, ASumTakesOneExchangeForEachLevelOfTheTree) {
  Recorder recorder(5, 8);
  std::vector<float> values(10);
  ASSERT_TRUE(recorder.AllReduceSum(absl::MakeSpan(values)).ok());
  EXPECT_EQ(recorder.Take(), ">4:40<4:40;>7:40<7:40;>1:40<1:40;");
}

TEST(PeerCommunicatorTest, ABarrierTakesALogarithmOfRounds) {
  Recorder recorder(1, 5);
  ASSERT_TRUE(recorder.Barrier().ok());
  EXPECT_EQ(recorder.Take(), ">2:0<0:0;>3:0<4:0;>0:0<2:0;");
}

TEST(PeerCommunicatorTest, NothingTravelsForEmptyCollectives) {
  Recorder recorder(0, 4);
  EXPECT_TRUE(recorder.AllReduceSum({}).ok());
  EXPECT_TRUE(recorder.AllGather({}, {}).ok());
  EXPECT_TRUE(recorder.Broadcast({}, 2).ok());
  EXPECT_EQ(recorder.Take(), "");
}

TEST(PeerCommunicatorTest, AGatherLeavesEmptyPartsOut) {
  Recorder recorder(0, 3);
  const std::vector<std::byte> mine(4);
  std::vector<std::byte> all(11);
  ASSERT_TRUE(recorder.AllGatherVariable(mine, {4, 0, 7}, absl::MakeSpan(all)).ok());
  EXPECT_EQ(recorder.Take(), ">1:4>2:4<2:7;");
}

}  // namespace
}  // namespace trireme::comm

#include "runtime/comm/rank_place.h"

#include <gtest/gtest.h>

#include "runtime/comm/thread_communicator.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

TEST(RankPlaceTest, OneHostIsOneIdentityWhateverItsName) {
  const RankPlace named = LocalPlace("n1");
  const RankPlace unnamed = LocalPlace("");
  EXPECT_EQ(named.host, "n1");
  EXPECT_FALSE(unnamed.host.empty());
  EXPECT_TRUE(AreOnOneHost({named, unnamed}));
  const RankPlace other = {.host = "n1", .identity = named.identity + "x"};
  EXPECT_FALSE(AreOnOneHost({named, other}));
}

TEST(RankPlaceTest, EveryRankLearnsAllPlaces) {
  auto group = MakeThreadCommunicators(3);
  ASSERT_TRUE(group.ok());
  RunOnThreads(*group, [](Communicator& communicator) {
    const std::string number = std::to_string(communicator.rank());
    const auto places =
        GatherPlaces(communicator, {.host = "n" + number, .identity = "i" + number});
    ASSERT_TRUE(places.ok()) << places.status();
    ASSERT_EQ(places->size(), 3U);
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ((*places)[rank].host, "n" + std::to_string(rank));
      EXPECT_EQ((*places)[rank].identity, "i" + std::to_string(rank));
    }
  });
}

}  // namespace
}  // namespace trireme::comm

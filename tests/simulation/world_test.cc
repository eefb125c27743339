#include "tests/simulation/world.h"

#include <gtest/gtest.h>

#include <string>

namespace trireme::simulation {
namespace {

class WorldTest : public ::testing::Test {
 protected:
  WorldTest() {
    balancer_.Start();
    replica_.Start();
    link_.on_reset = {[this] { text_ += "B"; }, [this] { text_ += "R"; }};
    link_.Connect();
  }
  void Send(char letter) {
    link_.Send(/*to=*/1, [this, letter] { text_ += letter; });
  }
  void Pass(absl::Duration time) { world_.RunUntil(world_.now() + time); }

  World world_{1};
  Process balancer_{&world_};
  Process replica_{&world_};
  Link link_{&world_, &balancer_, &replica_};
  std::string text_;
};

TEST_F(WorldTest, MessagesArriveInOrderThroughCutsAndPauses) {
  Send('a');
  Send('b');
  Pass(absl::Seconds(1));
  link_.Cut(1, true);
  Send('c');
  Pass(absl::Seconds(1));
  EXPECT_EQ(text_, "ab");
  replica_.Pause();
  link_.Cut(1, false);
  Send('d');
  Pass(absl::Seconds(1));
  EXPECT_EQ(text_, "ab");
  replica_.Resume();
  EXPECT_EQ(text_, "abcd");
}

TEST_F(WorldTest, AResetDropsWhatIsUnderWayAndTellsBothSides) {
  Send('a');
  link_.Reset();
  Pass(absl::Seconds(1));
  EXPECT_TRUE(text_ == "BR" || text_ == "RB") << text_;
  EXPECT_TRUE(link_.Connect());
}

TEST_F(WorldTest, AKilledProcessDoesNothingMore) {
  replica_.After(absl::Milliseconds(5), [this] { text_ += "x"; });
  replica_.Kill();
  replica_.Start();
  Pass(absl::Seconds(1));
  EXPECT_EQ(text_, "");
}

}  // namespace
}  // namespace trireme::simulation

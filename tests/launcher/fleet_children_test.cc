#include "launcher/fleet_children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>

#include "launcher/replica_command.h"
#include "tests/launcher/cluster_fixture.h"

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FleetChildrenTest, ReplicasComeFirstThenABalancerForEachAddress) {
  FleetOptions options = {.file = testing::LaptopCluster(), .program = "t"};
  options.file.balancer->listen = {"127.0.0.1:8080", "127.0.0.1:8081"};
  const std::vector<FleetChild> children = MakeFleetChildren(options, "/run", "here");
  ASSERT_EQ(children.size(), 3u);
  EXPECT_EQ(children[0].spec.name, "r1");
  EXPECT_EQ(children[0].spec.ranks, 2);
  EXPECT_EQ(children[1].spec.name, "balancer1");
  EXPECT_EQ(children[2].spec.name, "balancer2");
  EXPECT_EQ(children[2].listen, "127.0.0.1:8081");
  EXPECT_THAT(children[0].remote_hosts, IsEmpty());
}

TEST(FleetChildrenTest, WhatRunsIsWhatThePlanPrints) {
  const FleetOptions options = {
      .file = testing::LaptopCluster(), .cuts = {{.kv_tokens = 512}}, .program = "t"};
  const std::vector<FleetChild> children = MakeFleetChildren(options, "/run", "here");
  ReplicaStart start = {.program = "t", .run_folder = "/run", .epoch = 5, .kv_tokens = 512};
  start.is_root = ::geteuid() == 0;
  EXPECT_EQ(children[0].words(5), ReplicaWords(options.file, options.file.replicas[0], start));
}

TEST(FleetChildrenTest, OtherHostsAreSweptThroughTheAgentAndThisOneIsNot) {
  const FleetOptions options = {.file = testing::TwoNodesCluster(), .program = "t"};
  const std::vector<FleetChild> children = MakeFleetChildren(options, "/run", "node-a");
  ASSERT_EQ(children[0].remote_hosts.size(), 1u);
  EXPECT_EQ(children[0].remote_hosts[0].host, "node-b");
  EXPECT_THAT(children[0].remote_hosts[0].agent_words, ElementsAre("/opt/agent.sh", "node-b"));
  EXPECT_EQ(children[0].load_address, "unix:/run/r1.sock");
  // Rank 0 elsewhere: its socket cannot be reached from here.
  EXPECT_EQ(MakeFleetChildren(options, "/run", "head")[0].load_address, "");
}

TEST(FleetChildrenTest, PhasesFollowFromTheLauncher) {
  FleetOptions options = {.file = testing::LaptopCluster(), .program = "t"};
  EXPECT_EQ(MakeFleetChildren(options, "/run", "here")[0].spec.phases.size(), 4u);
  EXPECT_EQ(MakeFleetChildren(options, "/run", "here")[0].death_signal, SIGKILL);
  options.file.replicas[0].settings.launcher = topology::LauncherKind::kNone;
  EXPECT_EQ(MakeFleetChildren(options, "/run", "here")[0].spec.phases.size(), 3u);
  EXPECT_EQ(MakeFleetChildren(options, "/run", "here")[0].spec.ranks, 1);
  options.file.replicas[0].settings.launcher = topology::LauncherKind::kSrun;
  EXPECT_EQ(MakeFleetChildren(options, "/run", "here")[0].death_signal, SIGTERM);
}

TEST(FleetChildrenTest, AnAddressThatListensIsMadeOneThatAnswers) {
  EXPECT_EQ(ReachableAddress("0.0.0.0:7001", 0), "127.0.0.1:7001");
  EXPECT_EQ(ReachableAddress("127.0.0.1:0", 4321), "127.0.0.1:4321");
  EXPECT_EQ(ReachableAddress("[::]:7001", 0), "[::1]:7001");
  EXPECT_EQ(ReachableAddress("10.0.0.1:7001", 7001), "10.0.0.1:7001");
}

}  // namespace
}  // namespace trireme::launcher

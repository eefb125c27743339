#include "launcher/replica_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/cluster_fixture.h"

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;

TEST(ReplicaCommandTest, AReplicaWithoutALauncherIsOneProcess) {
  topology::ClusterFile file = testing::LaptopCluster();
  file.replicas[0].settings.launcher = topology::LauncherKind::kNone;
  const std::vector<std::string> words =
      ReplicaWords(file, file.replicas[0], {.program = "t", .run_folder = "/r", .epoch = 9});
  ASSERT_GE(words.size(), 4u);
  EXPECT_THAT(std::vector<std::string>(words.begin(), words.begin() + 4),
              ElementsAre("env", "TRIREME_RUN=/r:r1:9", "t", "serve"));
}

TEST(ReplicaCommandTest, ABalancerKnowsItsReplicasByNameAndAddress) {
  topology::ClusterFile file = testing::LaptopCluster();
  file.replicas.push_back(file.replicas[0]);
  file.replicas[1].name = "r2";
  file.replicas[1].engine_listen = "127.0.0.1:7102";
  file.balancer->replica_indices = {0, 1};
  EXPECT_EQ(ShellText(BalancerWords(file, "balancer1", "127.0.0.1:8080",
                                    {.program = "t", .run_folder = "/r", .epoch = 4})),
            "env TRIREME_RUN=/r:balancer1:4 t balance --listen 127.0.0.1:8080 "
            "--replicas r1=127.0.0.1:7101,r2=127.0.0.1:7102 --model /models/small.gguf "
            "--admin-listen unix:/r/balancer1.sock --epoch 4 --bounded-load 1.25 --explore 0.01 "
            "--stale 1s "
            "--retry-budget 0.1 --attempts 3 --resumes 3 --queue 2048 --resume-grace 10s "
            "--kv-cache f16 --activations auto --context-tokens 2048 --model-id small");
}

TEST(ReplicaCommandTest, BadWeightsAreRefusedWhereTheFileSaysSo) {
  topology::ClusterFile file = testing::LaptopCluster();
  EXPECT_THAT(ServeWords(file, file.replicas[0], {}),
              ::testing::Not(::testing::Contains("--bad-weights")));
  file.model.bad_weights = "refuse";
  EXPECT_THAT(ShellText(ServeWords(file, file.replicas[0], {})),
              ::testing::HasSubstr(" --bad-weights refuse"));
}

TEST(ReplicaCommandTest, ChildrenShowTheirMetricsOnThePortsAfterTheSupervisors) {
  topology::ClusterFile file = testing::LaptopCluster();
  file.observe.metrics = "127.0.0.1:9400";
  EXPECT_THAT(ServeWords(file, file.replicas[0], {}), ::testing::Contains("127.0.0.1:9401"));
  EXPECT_THAT(BalancerWords(file, "balancer1", file.balancer->listen[0], {}),
              ::testing::Contains("127.0.0.1:9402"));
}

TEST(ReplicaCommandTest, AReplicaThatListensOnAllInterfacesIsReachedAtItsHost) {
  topology::ClusterFile file = testing::TwoNodesCluster();
  EXPECT_EQ(EngineAddress(file, file.replicas[0]), "10.0.0.1:7001");
  file.replicas[0].engine_listen = "0.0.0.0:7001";
  EXPECT_EQ(EngineAddress(file, file.replicas[0]), "node-a:7001");
}

TEST(ReplicaCommandTest, CoresAreSharedOutInRunsAndFewerThanRanksAreShared) {
  topology::ClusterFile file = testing::LaptopCluster();
  topology::ClusterStage& stage = file.replicas[0].stages[0];
  stage.cores = {0, 1, 2, 3, 8, 9};
  std::vector<std::string> words = ServeWords(file, file.replicas[0], {});
  EXPECT_THAT(words, ::testing::Contains("0-2/3,8-9"));
  stage.ranks = 4;
  stage.cores = {5};
  words = ServeWords(file, file.replicas[0], {});
  EXPECT_THAT(words, ::testing::Contains("5/5/5/5"));
}

TEST(ReplicaCommandTest, AShellReadsBackWhatWasMeant) {
  const std::vector<std::string> words = {"a b", "it's", "", "$HOME", "x=1,2/3"};
  EXPECT_EQ(ShellText(words), R"('a b' 'it'\''s' '' '$HOME' x=1,2/3)");
}

TEST(ReplicaCommandTest, OnlyLoopbackNamesAreThisHostForSure) {
  EXPECT_TRUE(IsLoopbackHost(""));
  EXPECT_TRUE(IsLoopbackHost("localhost"));
  EXPECT_TRUE(IsLoopbackHost("127.0.0.1"));
  EXPECT_FALSE(IsLoopbackHost("node-a"));
  EXPECT_FALSE(IsLoopbackHost("10.0.0.1"));
}

}  // namespace
}  // namespace trireme::launcher

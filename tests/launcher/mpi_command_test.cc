#include "launcher/mpi_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/cluster_fixture.h"

namespace trireme::launcher {
namespace {

TEST(MpiCommandTest, RanksOfOneHostNeedNoAgent) {
  const topology::ClusterFile file = testing::LaptopCluster();
  EXPECT_EQ(
      ShellText(MpirunWords(file, file.replicas[0],
                            {.program = "/opt/trireme", .run_folder = "/run/t", .epoch = 3})),
      "env TRIREME_RUN=/run/t:r1:3 mpirun -n 2 --host localhost,localhost --map-by seq "
      "--bind-to none --oversubscribe "
      "--mca oob_tcp_keepalive_time 2 --mca oob_tcp_keepalive_intvl 1 "
      "--mca oob_tcp_keepalive_probes 3 --mca odls_base_sigkill_timeout 1 -x TRIREME_RUN "
      "/opt/trireme serve --model /models/small.gguf --replica r1 --epoch 3 "
      "--listen 127.0.0.1:7101 --admin-listen unix:/run/t/r1.sock --model-id small "
      "--tensor 2 --stages 1 --threads 1 --rank-cores 0/1 --context-tokens 2048 "
      "--kv-cache f16 --activations auto "
      "--launch-ms 65000 --connect-ms 50000 --heartbeat-ms 250 --suspect-ms 1000 --dead-ms 2500 "
      "--drain-announce-ms 2000 --drain-ms 120000");
}

TEST(MpiCommandTest, OtherHostsAreReachedByTheAgentOverTheNamedInterfaces) {
  const topology::ClusterFile file = testing::TwoNodesCluster();
  EXPECT_EQ(
      ShellText(MpirunWords(
          file, file.replicas[0],
          {.program = "/opt/trireme", .run_folder = "/run/t", .epoch = 1, .is_root = true})),
      "env TRIREME_RUN=/run/t:r1:1 mpirun -n 4 --host node-a,node-a,node-b,node-b --map-by seq "
      "--bind-to none --oversubscribe --allow-run-as-root "
      "--mca orte_keep_fqdn_hostnames 1 --mca plm_rsh_agent /opt/agent.sh "
      "--mca oob_tcp_if_include eth0 --mca pml ob1 --mca btl self,vader,tcp "
      "--mca btl_tcp_if_include ib0,ib1 "
      "--mca oob_tcp_keepalive_time 2 --mca oob_tcp_keepalive_intvl 1 "
      "--mca oob_tcp_keepalive_probes 3 --mca odls_base_sigkill_timeout 1 -x TRIREME_RUN "
      "/opt/trireme serve --model /models/small.gguf --replica r1 --epoch 1 "
      "--listen 10.0.0.1:7001 --admin-listen unix:/run/t/r1.sock "
      "--tensor 2 --stages 2 --stage-layers 10,20 --threads 2,1 "
      "--kv-cache f16 --activations auto --control-interface eth0 "
      "--launch-ms 65000 --connect-ms 50000 --heartbeat-ms 250 --suspect-ms 1000 --dead-ms 2500 "
      "--drain-announce-ms 2000 --drain-ms 120000");
}

TEST(MpiCommandTest, APlannersLayersAndCacheReplaceTheFiles) {
  const topology::ClusterFile file = testing::TwoNodesCluster();
  const std::vector<std::string> words = MpirunWords(
      file, file.replicas[0], {.run_folder = "/run", .stage_layers = {14, 16}, .kv_tokens = 4096});
  EXPECT_THAT(words, ::testing::Contains("14,16"));
  EXPECT_THAT(words, ::testing::Not(::testing::Contains("10,20")));
  EXPECT_THAT(words, ::testing::Contains("4096"));
}

}  // namespace
}  // namespace trireme::launcher

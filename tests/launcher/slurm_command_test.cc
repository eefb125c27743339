#include "launcher/slurm_command.h"

#include <gtest/gtest.h>

#include "tests/launcher/cluster_fixture.h"

namespace trireme::launcher {
namespace {

TEST(SlurmCommandTest, AStepNamesTheNodeOfEachRankAndDiesWithAnyOfThem) {
  topology::ClusterFile file = testing::TwoNodesCluster();
  file.replicas[0].settings.timeouts.stall = absl::Seconds(20);
  file.replicas[0].settings.drain.deadline = absl::Seconds(30);
  EXPECT_EQ(
      ShellText(SrunWords(file, file.replicas[0],
                          {.program = "/opt/trireme", .run_folder = "/run/t", .epoch = 2})),
      "env TRIREME_RUN=/run/t:r1:2 srun --mpi=pmix --kill-on-bad-exit=1 --overlap --overcommit "
      "--cpu-bind=none --ntasks=4 --distribution=arbitrary "
      "--nodelist=node-a,node-a,node-b,node-b --export=ALL --input=none --unbuffered "
      "/opt/trireme serve --model /models/small.gguf --replica r1 --epoch 2 "
      "--listen 10.0.0.1:7001 --admin-listen unix:/run/t/r1.sock "
      "--tensor 2 --stages 2 --stage-layers 10,20 --threads 2,1 "
      "--kv-cache f16 --activations auto --control-interface eth0 "
      "--launch-ms 65000 --connect-ms 50000 --heartbeat-ms 250 --suspect-ms 1000 --dead-ms 2500 "
      "--stall-ms 20000 --drain-announce-ms 2000 --drain-ms 30000");
}

}  // namespace
}  // namespace trireme::launcher

#include "launcher/fleet_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace trireme::launcher {
namespace {

constexpr char kAgentVariable[] = "OMPI_MCA_plm_rsh_agent";

std::string Written(const std::string& replica_keys) {
  const std::string path = testing::TempDir() + "/fleet_file_test.yaml";
  std::ofstream(path) << "version: 1\nmodel: {id: m, path: default}\nnodes: {a: {host: node-a}}\n"
                      << "replicas:\n  r1:\n    stages: [{node: a, ranks: 2}]\n"
                      << "    engine: {listen: \"node-a:7001\"}\n"
                      << replica_keys;
  return path;
}

TEST(FleetFile, TheDefaultModelIsTheOneOfTheEnvironment) {
  ::setenv("TRIREME_MODEL", "/models/a.gguf", 1);
  const auto file = ReadFleetFile(Written(""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->model.path, "/models/a.gguf");
}

TEST(FleetFile, TheAgentIsTheFilesOrElseMpiruns) {
  ::setenv(kAgentVariable, "/bin/agent", 1);
  auto file = ReadFleetFile(Written(""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->replicas[0].settings.remote_agent, "/bin/agent");
  file = ReadFleetFile(Written("    remote: {agent: /bin/other}\n"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->replicas[0].settings.remote_agent, "/bin/other");
  // A list of names to look for, as mpirun also takes it, is no program.
  ::setenv(kAgentVariable, "ssh : rsh", 1);
  file = ReadFleetFile(Written(""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->replicas[0].settings.remote_agent, "");
  ::unsetenv(kAgentVariable);
}

TEST(FleetFile, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(ReadFleetFile("/nowhere/fleet.yaml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadFleetFile("/").ok());
  const absl::Status endless = ReadFleetFile("/dev/zero").status();
  EXPECT_EQ(endless.code(), absl::StatusCode::kInvalidArgument) << endless;
  EXPECT_NE(endless.message().find("/dev/zero: more than 4194304 bytes"), std::string::npos)
      << endless;
}

}  // namespace
}  // namespace trireme::launcher

#include "launcher/balancer_reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FileText(const std::string& balancer, const std::string& port = "7001") {
  return "version: 1\nname: t\nmodel: {path: /m.gguf}\nnodes: {n: {}}\nreplicas:\n  r1:\n"
         "    stages: [{node: n, ranks: 1}]\n    engine: {listen: \"127.0.0.1:" +
         port + "\"}\n" + balancer;
}

class BalancerReloadTest : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  absl::StatusOr<BalancerReload::Outcome> Reload(bool dry_run = false) {
    return reload_.Reload(dry_run);
  }

  const std::string path_ = testing::TempDir() + "/balancer_reload_test.yaml";
  std::vector<balance::BalancerOptions> applied_;
  BalancerReload reload_{
      path_,
      {.replicas = {{"r1", "127.0.0.1:7001"}}, .resume_grace = absl::Seconds(10)},
      StartOptions(),
      [this](const balance::BalancerOptions& options) { applied_.push_back(options); }};

  static balance::BalancerOptions StartOptions() {
    balance::BalancerOptions options;
    options.admission.queued_requests_max = 2048;  // the file's own default
    options.random_seed = 42;
    return options;
  }
};

TEST_F(BalancerReloadTest, F15_AGoodFileIsPutInForceAndTheRestIsKept) {
  Write(
      FileText("balancer: {listen: {grpc: \"127.0.0.1:1\"}, policy: {explore: 0.25}, "
               "retry: {resumes: 9}}\n"));
  const auto outcome = Reload();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(outcome->changes, ElementsAre("balancer.policy.explore: 0.01 -> 0.25",
                                            "balancer.retry.resumes: 3 -> 9"));
  EXPECT_EQ(outcome->version, 1u);
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0].pick.explore, 0.25);
  EXPECT_EQ(applied_[0].retry.resumes_per_request, 9);
  EXPECT_EQ(applied_[0].random_seed, 42u);
  // The same file again changes nothing.
  EXPECT_EQ(Reload()->version, 1u);
  EXPECT_EQ(applied_.size(), 1u);
}

TEST_F(BalancerReloadTest, F15_ATrialSaysWhatWouldChangeAndChangesNothing) {
  Write(FileText("balancer: {listen: {grpc: \"127.0.0.1:1\"}, limits: {queue: 5}}\n"));
  const auto outcome = Reload(/*dry_run=*/true);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(outcome->changes, ElementsAre("balancer.limits.queue: 2048 -> 5"));
  EXPECT_EQ(outcome->version, 0u);
  EXPECT_TRUE(applied_.empty());
}

TEST_F(BalancerReloadTest, F15_AWrongFileChangesNothingAndAllItsMistakesAreTold) {
  Write(
      FileText("balancer: {listen: {grpc: \"127.0.0.1:1\"}, policy: {explore: 0.25, polcy: 1}, "
               "retry: {resumes: many}}\n"));
  const auto outcome = Reload();
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.status())) << outcome.status();
  EXPECT_THAT(outcome.status().message(), HasSubstr("polcy"));
  EXPECT_THAT(outcome.status().message(), HasSubstr("resumes"));
  EXPECT_TRUE(applied_.empty());
  Write(FileText("balancer: {listen: {grpc: \"127.0.0.1:1\"}, policy: {stale: 10s}}\n"));
  EXPECT_THAT(Reload().status().message(), HasSubstr("balancer.policy.stale: 10s; it must be"));
  Write("");
  EXPECT_FALSE(Reload().ok());
  Write(FileText(""));
  EXPECT_THAT(Reload().status().message(), HasSubstr("balancer: the file has none"));
  EXPECT_TRUE(applied_.empty());
  // The last good one is where the next goes on from.
  Write(FileText("balancer: {listen: {grpc: \"127.0.0.1:1\"}, policy: {explore: 0.5}}\n"));
  EXPECT_THAT(Reload()->changes, ElementsAre("balancer.policy.explore: 0.01 -> 0.5"));
}

TEST_F(BalancerReloadTest, F15_WhatOnlyARestartChangesIsRefusedByName) {
  Write(FileText("balancer: {listen: {grpc: \"127.0.0.1:1\"}, policy: {explore: 0.5}}\n", "7009"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Reload().status()));
  EXPECT_THAT(Reload().status().message(), HasSubstr("r1=127.0.0.1:7009 need a restart"));
  Write(FileText("balancer: {listen: {grpc: \"127.0.0.1:1\"}, resume_grace: 3s}\n"));
  EXPECT_THAT(Reload().status().message(), HasSubstr("balancer.resume_grace: 3s needs a restart"));
  EXPECT_TRUE(applied_.empty());
}

}  // namespace
}  // namespace trireme::launcher

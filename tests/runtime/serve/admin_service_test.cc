#include "runtime/serve/admin_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "admin.pb.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

ServedReplicaOptions Options() {
  ServedReplicaOptions options;
  options.server.admin_listen = "127.0.0.1:0";
  options.server.drain_announce = absl::Milliseconds(10);
  options.server.status = [] {
    StatusSnapshot snapshot;
    snapshot.phase_detail = "serving";
    snapshot.epoch = 7;
    snapshot.ranks.push_back({.rank = 1,
                              .host = "n2",
                              .process_id = 42,
                              .step = 17,
                              .heartbeat_age = absl::Milliseconds(250),
                              .phase = "serve",
                              .stage = 1});
    snapshot.expert_layers.push_back(
        {.layer = 3, .tokens = {9, 3, uint64_t{1} << 40}, .busiest_ratio = 2.25});
    return snapshot;
  };
  return options;
}

std::unique_ptr<ServiceClient> Admin(ServedReplica& replica) {
  return ServiceClient::Connect(absl::StrCat("127.0.0.1:", replica.server().admin_port()));
}

TEST(AdminService, ShowsReplicaAndRanks) {
  ServedReplica replica(Options());
  std::string bytes;
  ASSERT_TRUE(Admin(replica)->Call("/trireme.v1.Admin/GetStatus", "", &bytes).ok());
  v1::ReplicaStatus status;
  ASSERT_TRUE(status.ParseFromString(bytes));
  EXPECT_EQ(status.phase(), v1::REPLICA_PHASE_SERVING);
  EXPECT_EQ(status.model(), "fake");
  EXPECT_EQ(status.epoch(), 7u);
  ASSERT_EQ(status.ranks_size(), 1);
  EXPECT_EQ(status.ranks(0).host(), "n2");
  EXPECT_EQ(status.ranks(0).process_id(), 42);
  EXPECT_EQ(status.ranks(0).step(), 17u);
  EXPECT_EQ(status.ranks(0).heartbeat_age().nanos(), 250'000'000);
  ASSERT_EQ(status.expert_layers_size(), 1);
  EXPECT_EQ(status.expert_layers(0).layer(), 3);
  ASSERT_EQ(status.expert_layers(0).tokens_size(), 3);
  EXPECT_EQ(status.expert_layers(0).tokens(0), 9u);
  EXPECT_EQ(status.expert_layers(0).tokens(2), uint64_t{1} << 40);
  EXPECT_EQ(status.expert_layers(0).busiest_ratio(), 2.25);
}

TEST(AdminService, IsNotOnThePublicListener) {
  ServedReplica replica(Options());
  std::string bytes;
  EXPECT_EQ(replica.client().Call("/trireme.v1.Admin/GetStatus", "", &bytes).code,
            absl::StatusCode::kUnimplemented);
}

TEST(AdminService, DrainsTheReplica) {
  ServedReplica replica(Options());
  std::string bytes;
  ASSERT_TRUE(Admin(replica)->Call("/trireme.v1.Admin/Drain", "", &bytes).ok());
  replica.server().Wait();
}

TEST(AdminService, RefusesWhatADrainCannotDo) {
  ServedReplica replica(Options());
  v1::DrainRequest request;
  request.set_migrate(true);
  std::string bytes;
  EXPECT_EQ(
      Admin(replica)->Call("/trireme.v1.Admin/Drain", request.SerializeAsString(), &bytes).reason,
      "FIELD_NOT_SUPPORTED");
  request.mutable_deadline()->set_seconds(-1);
  EXPECT_EQ(
      Admin(replica)->Call("/trireme.v1.Admin/Drain", request.SerializeAsString(), &bytes).reason,
      "BAD_PARAMETER");
}

TEST(AdminService, F15_ReloadsAndTellsWhatChangedOrWhatIsWrong) {
  ServedReplicaOptions options = Options();
  options.server.reload = [](bool dry_run) -> absl::StatusOr<ReloadOutcome> {
    if (dry_run) {
      return absl::FailedPreconditionError("line 3 is wrong");
    }
    return ReloadOutcome{.changes = {"a: 1 -> 2"}, .version = 4};
  };
  ServedReplica replica(options);
  std::string bytes;
  ASSERT_TRUE(Admin(replica)->Call("/trireme.v1.Admin/Reload", "", &bytes).ok());
  v1::ReloadResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  ASSERT_EQ(response.changes_size(), 1);
  EXPECT_EQ(response.changes(0), "a: 1 -> 2");
  EXPECT_EQ(response.version(), 4u);
  v1::ReloadRequest request;
  request.set_dry_run(true);
  const CallResult result =
      Admin(replica)->Call("/trireme.v1.Admin/Reload", request.SerializeAsString(), &bytes);
  EXPECT_EQ(result.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(result.reason, "BAD_PARAMETER");
  EXPECT_EQ(result.message, "line 3 is wrong");
}

TEST(AdminService, WithoutAFileThereIsNothingToReload) {
  ServedReplica replica(Options());
  std::string bytes;
  EXPECT_EQ(Admin(replica)->Call("/trireme.v1.Admin/Reload", "", &bytes).reason,
            "METHOD_NOT_SUPPORTED");
}

TEST(AdminService, TellsWhatBecameOfARequest) {
  ServedReplica replica(Options());
  v1::GenerateRequest generate = TokenRequest(4);
  generate.set_request_id("asked");
  ASSERT_TRUE(Generate(replica.client(), generate).result.ok());
  v1::GetRequestRequest request;
  request.set_request_id("asked");
  std::string bytes;
  const auto ask = [&] {
    return Admin(replica)->Call("/trireme.v1.Admin/GetRequest", request.SerializeAsString(),
                                &bytes);
  };
  // The record is written once gRPC is done with the stream, which the client may see earlier.
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (!ask().ok() && absl::Now() < give_up) {
    std::this_thread::yield();
  }
  v1::GetRequestResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  ASSERT_EQ(response.traces_size(), 1);
  const v1::RequestTrace& trace = response.traces(0);
  EXPECT_EQ(trace.outcome(), "ok");
  EXPECT_EQ(trace.finish(), "max_tokens");
  EXPECT_EQ(trace.usage().prompt_tokens(), 3);
  EXPECT_EQ(trace.usage().generated_tokens(), 4);
  const auto seconds = [](const google::protobuf::Duration& time) {
    return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
  };
  EXPECT_NEAR(seconds(trace.queue()) + seconds(trace.prefill()) + seconds(trace.decode()),
              seconds(trace.total()), 1e-6);

  request.set_request_id("never asked");
  EXPECT_EQ(ask().reason, "REQUEST");
}

}  // namespace
}  // namespace trireme::serve

#include "runtime/serve/health_board.h"

#include <gtest/gtest.h>

#include "grpc/health/v1/health.pb.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckRequest Named(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

HealthCheckResponse::ServingStatus Check(ServiceClient& client, const std::string& service) {
  std::string bytes;
  HealthCheckResponse response;
  const CallResult result =
      client.Call("/grpc.health.v1.Health/Check", Named(service).SerializeAsString(), &bytes);
  EXPECT_TRUE(result.ok()) << result.ToString();
  EXPECT_TRUE(response.ParseFromString(bytes));
  return response.status();
}

HealthCheckResponse::ServingStatus Next(ServiceStream& stream) {
  std::string bytes;
  HealthCheckResponse response;
  EXPECT_TRUE(stream.Read(&bytes));
  EXPECT_TRUE(response.ParseFromString(bytes));
  return response.status();
}

class RecordingWatcher final : public HealthBoard::Watcher {
 public:
  void OnHealth(Health health) override { healths.push_back(health); }
  void OnShutdown() override { shut_down = true; }
  std::vector<Health> healths;
  bool shut_down = false;
};

TEST(HealthBoard, TellsWatchersTheHealthAndItsChanges) {
  HealthBoard board;
  RecordingWatcher watcher;
  board.Add("a", &watcher);
  board.Set("b", Health::kServing);
  board.Set("a", Health::kNotServing);
  board.SetAll(Health::kServing);
  EXPECT_EQ(watcher.healths,
            (std::vector<Health>{Health::kUnknownService, Health::kNotServing, Health::kServing}));
  board.Remove("a", &watcher);
  board.SetAll(Health::kNotServing);
  EXPECT_EQ(watcher.healths.size(), 3u);
  EXPECT_EQ(board.Get("a"), Health::kNotServing);
  EXPECT_EQ(board.Get("c"), Health::kUnknownService);
}

TEST(HealthBoard, EndsWatchesThatComeAfterTheShutdownToo) {
  HealthBoard board;
  RecordingWatcher early;
  RecordingWatcher late;
  board.Add("a", &early);
  board.Shutdown();
  board.Add("a", &late);
  EXPECT_TRUE(early.shut_down);
  EXPECT_TRUE(late.shut_down);
  board.Remove("a", &early);
  board.Remove("a", &late);
}

// G-1: no SERVING before the replica is open, and all three names then.
TEST(HealthBoard, TheServiceTurnsServingWhenTheReplicaIsOpen) {
  ServedReplicaOptions options;
  options.open = false;
  ServedReplica replica(options);
  ServiceClient& client = replica.client();
  EXPECT_EQ(Check(client, ""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check(client, "trireme.v1.Inference"), HealthCheckResponse::NOT_SERVING);
  std::string bytes;
  EXPECT_EQ(
      client.Call("/grpc.health.v1.Health/Check", Named("x").SerializeAsString(), &bytes).code,
      absl::StatusCode::kNotFound);
  auto watch = client.Open("/grpc.health.v1.Health/Watch",
                           Named("trireme.v1.Inference/fake").SerializeAsString());
  EXPECT_EQ(Next(*watch), HealthCheckResponse::SERVICE_UNKNOWN);
  replica.server().Open(replica.Facade());
  HealthCheckResponse::ServingStatus status = Next(*watch);
  if (status == HealthCheckResponse::NOT_SERVING) {  // may be skipped: only the newest matters
    status = Next(*watch);
  }
  EXPECT_EQ(status, HealthCheckResponse::SERVING);
  for (const char* name : {"", "trireme.v1.Inference", "trireme.v1.Inference/fake"}) {
    EXPECT_EQ(Check(client, name), HealthCheckResponse::SERVING) << name;
  }
  replica.server().SetServing(false);
  EXPECT_EQ(Next(*watch), HealthCheckResponse::NOT_SERVING);
  replica.server().SetServing(true);
  EXPECT_EQ(Next(*watch), HealthCheckResponse::SERVING);
}

}  // namespace
}  // namespace trireme::serve

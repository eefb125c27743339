#include "runtime/serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.pb.h"
#include "runtime/base/error_reason.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

using grpc::health::v1::HealthCheckResponse;
using testing::HasSubstr;
using testing::IsEmpty;

ServedReplicaOptions LongStreams() {
  ServedReplicaOptions options;
  options.controller.step_time = absl::Milliseconds(2);
  options.controller.context = 1'000'000;
  options.server.drain_announce = absl::Milliseconds(100);
  return options;
}

std::unique_ptr<ServiceStream> StartLongStream(ServedReplica& replica, int64_t tokens) {
  auto stream = replica.client().Open(kGenerate, TokenRequest(tokens).SerializeAsString());
  std::string bytes;
  EXPECT_TRUE(stream->Read(&bytes));
  return stream;
}

absl::StatusCode RestOf(ServiceStream& stream, CallResult* result) {
  std::string bytes;
  while (stream.Read(&bytes)) {
  }
  *result = stream.Finish();
  return result->code;
}

// G-9.
TEST(Server, RefusesToStartOnATakenPort) {
  ServedReplica replica;
  ServerOptions options;
  options.listen = replica.address();
  const auto second = Server::Create(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(replica.address()));
}

// G-2: NOT_SERVING is heard before the door closes, and the running stream is finished.
TEST(Server, ADrainAnnouncesThenFinishesThenShutsDown) {
  ServedReplica replica(LongStreams());
  auto watch = replica.client().Open("/grpc.health.v1.Health/Watch", "");
  std::string bytes;
  HealthCheckResponse health;
  ASSERT_TRUE(watch->Read(&bytes));
  ASSERT_TRUE(health.ParseFromString(bytes));
  EXPECT_EQ(health.status(), HealthCheckResponse::SERVING);
  auto stream = StartLongStream(replica, 200);

  const absl::Time start = absl::Now();
  replica.server().Drain(absl::Seconds(60));
  ASSERT_TRUE(watch->Read(&bytes));
  ASSERT_TRUE(health.ParseFromString(bytes));
  EXPECT_EQ(health.status(), HealthCheckResponse::NOT_SERVING);
  StreamRecord refused;
  do {
    refused = Generate(replica.client(), TokenRequest(1));
  } while (refused.result.ok());
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(100)) << "new work is taken while announcing";
  EXPECT_EQ(refused.result.reason, "DRAINING");
  EXPECT_TRUE(refused.result.has_retry_info);

  CallResult result;
  EXPECT_EQ(RestOf(*stream, &result), absl::StatusCode::kOk) << result.ToString();
  replica.server().Wait();
}

TEST(Server, ADrainEndsStreamsThatOutliveItsDeadline) {
  ServedReplica replica(LongStreams());
  auto stream = StartLongStream(replica, 900'000);
  replica.server().Drain(absl::Milliseconds(50));
  CallResult result;
  EXPECT_EQ(RestOf(*stream, &result), absl::StatusCode::kUnavailable);
  EXPECT_EQ(result.reason, "DRAINING");
  EXPECT_EQ(result.trailers.count("trireme-last-seq"), 1u);
  replica.server().Wait();
}

TEST(Server, ASecondDrainEndsTheStreamsNow) {
  ServedReplica replica(LongStreams());
  auto stream = StartLongStream(replica, 900'000);
  replica.server().Drain(absl::Hours(1));
  replica.server().Drain(absl::Hours(1));
  CallResult result;
  EXPECT_EQ(RestOf(*stream, &result), absl::StatusCode::kUnavailable);
  replica.server().Wait();
}

// F-1 for the door: details and last seq, at once, for all streams.
TEST(Server, ALostReplicaEndsAllStreamsWithTheCulprit) {
  ServedReplica replica(LongStreams());
  std::vector<std::unique_ptr<ServiceStream>> streams;
  for (int index = 0; index < 50; ++index) {
    streams.push_back(StartLongStream(replica, 900'000));
  }
  const absl::Time start = absl::Now();
  replica.server().EndStreams(
      WithReason(absl::UnavailableError("rank 3 on n2 died at step 17"), kReasonRankLost));
  // A generous bound for a loaded machine: the streams would run for half an hour.
  EXPECT_TRUE(replica.server().WaitForStreams(absl::Seconds(20)));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  for (const auto& stream : streams) {
    CallResult result;
    EXPECT_EQ(RestOf(*stream, &result), absl::StatusCode::kUnavailable);
    EXPECT_EQ(result.reason, "RANK_LOST");
    EXPECT_THAT(result.message, HasSubstr("rank 3 on n2 died at step 17"));
    EXPECT_TRUE(result.has_retry_info);
    EXPECT_EQ(result.trailers.count("trireme-last-seq"), 1u);
  }
  EXPECT_EQ(Generate(replica.client(), TokenRequest(1)).result.reason, "RANK_LOST");
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(10)));
}

// Finish comes while a write is in flight that flow control holds back: the status must follow the
// event and not replace or break it.
TEST(Server, AStreamThatIsNotReadEndsToo) {
  ServedReplicaOptions options = LongStreams();
  options.controller.step_time = absl::ZeroDuration();
  options.controller.context = 10'000'000;
  options.controller.tokens_per_step = 1000;
  ServedReplica replica(options);
  auto stream = replica.client().Open(kGenerate, TokenRequest(900'000).SerializeAsString(),
                                      absl::InfiniteDuration());
  ASSERT_TRUE(replica.controller().WaitUntilStarted(1, absl::Seconds(60)));
  ASSERT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(60)));
  replica.server().EndStreams(
      WithReason(absl::UnavailableError("rank 1 on n1 died"), kReasonRankLost));
  const StreamRecord record = ReadStream(*stream);
  EXPECT_THAT(record.broken_rules, IsEmpty());
  EXPECT_EQ(record.result.code, absl::StatusCode::kUnavailable) << record.result.ToString();
  EXPECT_EQ(record.result.reason, "RANK_LOST");
  EXPECT_EQ(record.result.trailers.at("trireme-last-seq"), absl::StrCat(record.events.size()));
}

TEST(Server, ReflectionIsOnTheAdminListenerOnly) {
  ServedReplicaOptions options;
  options.server.admin_listen = "127.0.0.1:0";
  ServedReplica replica(options);
  // ServerReflectionRequest{list_services: "*"}: field 7, one byte.
  const std::string list("\x3A\x01*");
  constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  std::string response;
  EXPECT_EQ(replica.client().Call(kMethod, list, &response).code, absl::StatusCode::kUnimplemented);
  const auto admin =
      ServiceClient::Connect(absl::StrCat("127.0.0.1:", replica.server().admin_port()));
  EXPECT_TRUE(admin->Call(kMethod, list, &response).ok());
  for (const char* name :
       {"trireme.v1.Admin", "trireme.v1.Inference", "trireme.v1.Engine", "grpc.health.v1.Health"}) {
    EXPECT_THAT(response, HasSubstr(name));
  }
}

TEST(Server, ShutsDownWithStreamsAndWatchesOpen) {
  ServedReplica replica(LongStreams());
  auto stream = StartLongStream(replica, 900'000);
  auto watch = replica.client().Open("/grpc.health.v1.Health/Watch", "");
  std::string bytes;
  ASSERT_TRUE(watch->Read(&bytes));
  replica.server().Shutdown();
  replica.server().Shutdown();
  CallResult result;
  EXPECT_EQ(RestOf(*stream, &result), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RestOf(*watch, &result), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace trireme::serve

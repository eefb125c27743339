#include "runtime/serve/load_call.h"

#include <gtest/gtest.h>

#include "engine.pb.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

constexpr char kWatchLoad[] = "/trireme.v1.Engine/WatchLoad";

v1::LoadReport ReadReport(ServiceStream& stream) {
  std::string bytes;
  v1::LoadReport report;
  EXPECT_TRUE(stream.Read(&bytes));
  EXPECT_TRUE(report.ParseFromString(bytes));
  return report;
}

TEST(LoadCall, ReportsAtOnceAtEachChangeAndFromTimeToTime) {
  ServedReplicaOptions options;
  options.server.door.load_report_min = absl::Milliseconds(5);
  options.server.door.load_report_max = absl::Milliseconds(20);
  ServedReplica replica(options);
  auto stream = replica.client().Open(kWatchLoad, "");
  v1::LoadReport report = ReadReport(*stream);
  EXPECT_EQ(report.report_seq(), 1u);
  EXPECT_EQ(report.epoch(), 7u);
  EXPECT_EQ(report.phase(), v1::REPLICA_PHASE_SERVING);
  EXPECT_EQ(report.waiting_requests(), 0);
  EXPECT_EQ(ReadReport(*stream).report_seq(), 2u) << "nothing changed, but the time has passed";

  replica.controller().Hold(true);
  auto waiting = replica.client().Open(kGenerate, TokenRequest(1).SerializeAsString());
  while (report.waiting_requests() == 0) {
    report = ReadReport(*stream);
  }
  EXPECT_EQ(report.new_requests_max(), 1023);
  replica.controller().Hold(false);
  stream->Cancel();
  EXPECT_EQ(stream->Finish().code, absl::StatusCode::kCancelled);
}

TEST(LoadCall, AStartingReplicaReportsItself) {
  ServedReplicaOptions options;
  options.open = false;
  ServedReplica replica(options);
  auto stream = replica.client().Open(kWatchLoad, "");
  EXPECT_EQ(ReadReport(*stream).phase(), v1::REPLICA_PHASE_STARTING);
  replica.server().Open(replica.Facade());
  EXPECT_EQ(ReadReport(*stream).phase(), v1::REPLICA_PHASE_SERVING);
}

TEST(LoadCall, EndsWhenTheServerShutsDown) {
  ServedReplica replica;
  auto stream = replica.client().Open(kWatchLoad, "");
  ReadReport(*stream);
  replica.server().Shutdown();
  std::string bytes;
  while (stream->Read(&bytes)) {
  }
  const CallResult result = stream->Finish();
  EXPECT_EQ(result.code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(result.reason, "DRAINING");
}

}  // namespace
}  // namespace trireme::serve

#include "runtime/serve/stream_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "admin.pb.h"
#include "runtime/base/error_reason.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

using testing::IsEmpty;

std::vector<int32_t> Expected(const std::vector<int32_t>& prompt, uint32_t choice, int64_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t position = 0; position < tokens; ++position) {
    ids.push_back(FakeController::TokenAt(prompt, choice, position, 300));
  }
  return ids;
}

TEST(StreamCall, StreamsTheTokensAndEndsWithOneFinished) {
  ServedReplica replica;
  const StreamRecord record = Generate(replica.client(), TokenRequest(20));
  EXPECT_THAT(record.broken_rules, IsEmpty());
  ASSERT_TRUE(record.result.ok()) << record.result.ToString();
  ASSERT_EQ(record.token_ids.size(), 1u);
  EXPECT_EQ(record.token_ids[0], Expected({1, 2, 3}, 0, 20));
  ASSERT_NE(record.finished(), nullptr);
  EXPECT_EQ(record.finished()->usage().generated_tokens(), 20);
  EXPECT_EQ(record.finished()->usage().prompt_tokens(), 3);
  std::string text;
  for (const int32_t id : record.token_ids[0]) {
    text += FakeController::TextOf(id);
  }
  EXPECT_EQ(record.texts[0], text);
}

TEST(StreamCall, RunsAllChoicesOfOneRequest) {
  ServedReplica replica;
  v1::GenerateRequest request = TokenRequest(10);
  request.mutable_sampling()->set_n(3);
  const StreamRecord record = Generate(replica.client(), request);
  EXPECT_THAT(record.broken_rules, IsEmpty());
  ASSERT_EQ(record.token_ids.size(), 3u);
  for (uint32_t choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(record.token_ids[choice], Expected({1, 2, 3}, choice, 10));
  }
  EXPECT_EQ(record.finished()->usage().generated_tokens(), 30);
}

TEST(StreamCall, SixteenClientsGetTheirOwnTokens) {
  ServedReplica replica;
  std::vector<std::thread> threads;
  std::vector<StreamRecord> records(16);
  for (int32_t index = 0; index < 16; ++index) {
    threads.emplace_back([&, index] {
      v1::GenerateRequest request = TokenRequest(30);
      request.mutable_tokens()->add_token_ids(index);
      const auto client = ServiceClient::Connect(replica.address());
      records[static_cast<size_t>(index)] = Generate(*client, request);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int32_t index = 0; index < 16; ++index) {
    const StreamRecord& record = records[static_cast<size_t>(index)];
    EXPECT_THAT(record.broken_rules, IsEmpty());
    ASSERT_EQ(record.token_ids.size(), 1u) << record.result.ToString();
    EXPECT_EQ(record.token_ids[0], Expected({1, 2, 3, index}, 0, 30));
  }
}

TEST(StreamCall, AWaitingStreamHearsThatItWaits) {
  ServedReplicaOptions options;
  options.server.door.queued_after = absl::Milliseconds(20);
  ServedReplica replica(options);
  replica.controller().Hold(true);
  auto stream = replica.client().Open(kGenerate, TokenRequest(2).SerializeAsString());
  std::string bytes;
  v1::GenerateEvent event;
  for (uint64_t seq = 1; seq <= 3; ++seq) {
    ASSERT_TRUE(stream->Read(&bytes));
    ASSERT_TRUE(event.ParseFromString(bytes));
    EXPECT_EQ(event.seq(), seq);
    EXPECT_TRUE(event.has_queued());
    EXPECT_EQ(event.queued().position(), 1);
  }
  replica.controller().Hold(false);
  while (stream->Read(&bytes)) {
    ASSERT_TRUE(event.ParseFromString(bytes));
  }
  EXPECT_TRUE(event.has_finished());
  EXPECT_TRUE(stream->Finish().ok());
}

// A12 and G-8: no prefill after the deadline, and the place is free at once.
TEST(StreamCall, ADeadlineInTheQueueEndsWithoutAStart) {
  ServedReplica replica;
  replica.controller().Hold(true);
  const StreamRecord record = Generate(replica.client(), TokenRequest(5), absl::Milliseconds(50));
  EXPECT_EQ(record.result.code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(record.broken_rules, IsEmpty());
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(10)));
  replica.controller().Hold(false);
  EXPECT_EQ(replica.controller().started_requests(), 0);
}

TEST(StreamCall, ADeadlineOfAMillisecondOrAHundredYearsIsFine) {
  ServedReplica replica;
  // Held, since a token is made before the shortest deadline that gRPC tells apart has passed.
  replica.controller().Hold(true);
  EXPECT_EQ(Generate(replica.client(), TokenRequest(1), absl::Microseconds(1)).result.code,
            absl::StatusCode::kDeadlineExceeded);
  replica.controller().Hold(false);
  EXPECT_TRUE(Generate(replica.client(), TokenRequest(1), absl::Hours(24 * 36525)).result.ok());
  EXPECT_TRUE(Generate(replica.client(), TokenRequest(1), absl::InfiniteDuration()).result.ok());
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(10)));
}

// B18: queued, and in the middle of the answer.
TEST(StreamCall, ACancelInAnyPhaseFreesThePlace) {
  ServedReplicaOptions options;
  options.controller.step_time = absl::Milliseconds(2);
  options.controller.context = 100000;
  ServedReplica replica(options);
  replica.controller().Hold(true);
  std::vector<std::unique_ptr<ServiceStream>> streams;
  for (int index = 0; index < 20; ++index) {
    streams.push_back(replica.client().Open(kGenerate, TokenRequest(50000).SerializeAsString()));
  }
  for (int index = 0; index < 10; ++index) {
    streams[static_cast<size_t>(index)]->Cancel();
  }
  replica.controller().Hold(false);
  std::string bytes;
  for (int index = 10; index < 20; ++index) {
    ASSERT_TRUE(streams[static_cast<size_t>(index)]->Read(&bytes));
    streams[static_cast<size_t>(index)]->Cancel();
  }
  for (const auto& stream : streams) {
    EXPECT_EQ(stream->Finish().code, absl::StatusCode::kCancelled);
  }
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(10)));
  EXPECT_EQ(replica.controller().load().blocks_free, 100);
  EXPECT_TRUE(replica.server().WaitForStreams(absl::Seconds(10)));
}

// G-11: the engine goes on, what is unread is joined, and the slow reader is ended.
TEST(StreamCall, AClientThatDoesNotReadIsEndedAndHoldsNobodyUp) {
  ServedReplicaOptions options;
  // The client's window takes 64 KiB that nobody reads; this is 8 MB.
  options.controller.context = 10'000'000;
  options.controller.tokens_per_step = 1000;
  options.server.door.slow_reader_timeout = absl::Milliseconds(300);
  options.server.admin_listen = "127.0.0.1:0";
  ServedReplica replica(options);
  v1::GenerateRequest request = TokenRequest(900'000);
  request.set_request_id("slow");
  auto stream =
      replica.client().Open(kGenerate, request.SerializeAsString(), absl::InfiniteDuration());
  ASSERT_TRUE(replica.controller().WaitUntilStarted(1, absl::Seconds(60)));
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(60)));
  EXPECT_TRUE(replica.server().WaitForStreams(absl::Seconds(10)));
  const auto other = ServiceClient::Connect(replica.address());
  EXPECT_TRUE(Generate(*other, TokenRequest(5)).result.ok());
  const StreamRecord record = ReadStream(*stream);
  EXPECT_THAT(record.broken_rules, IsEmpty());
  // The status itself waits behind what is not read, and the call is cut in the end.
  EXPECT_TRUE(record.result.code == absl::StatusCode::kAborted ||
              record.result.code == absl::StatusCode::kCancelled)
      << record.result.ToString() << " after " << record.events.size() << " events";
  v1::GetRequestRequest asked;
  asked.set_request_id("slow");
  std::string bytes;
  ASSERT_TRUE(ServiceClient::Connect(absl::StrCat("127.0.0.1:", replica.server().admin_port()))
                  ->Call("/trireme.v1.Admin/GetRequest", asked.SerializeAsString(), &bytes)
                  .ok());
  v1::GetRequestResponse answer;
  ASSERT_TRUE(answer.ParseFromString(bytes));
  ASSERT_EQ(answer.traces_size(), 1);
  EXPECT_EQ(answer.traces(0).outcome(), "SLOW_READER");
}

TEST(StreamCall, TheEnginesErrorComesAfterTheTokensThatWereMade) {
  ServedReplicaOptions options;
  options.controller.step_time = absl::Milliseconds(1);
  options.controller.context = 100000;
  ServedReplica replica(options);
  auto stream = replica.client().Open(kGenerate, TokenRequest(50000).SerializeAsString());
  std::string bytes;
  v1::GenerateEvent event;
  for (int events = 0; events < 10; ++events) {
    ASSERT_TRUE(stream->Read(&bytes));
    ASSERT_TRUE(event.ParseFromString(bytes));
  }
  replica.controller().Stop(
      WithReason(absl::UnavailableError("rank 1 on n2 died at step 5"), kReasonRankLost));
  while (stream->Read(&bytes)) {
    ASSERT_TRUE(event.ParseFromString(bytes));
  }
  const CallResult result = stream->Finish();
  EXPECT_EQ(result.code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(result.reason, "RANK_LOST");
  EXPECT_TRUE(result.has_retry_info);
  EXPECT_EQ(result.trailers.at("trireme-last-seq"), absl::StrCat(event.seq()));
}

}  // namespace
}  // namespace trireme::serve

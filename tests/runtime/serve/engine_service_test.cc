#include "runtime/serve/engine_service.h"

#include <gtest/gtest.h>

#include "engine.pb.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

constexpr char kExecute[] = "/trireme.v1.Engine/Execute";

v1::ExecuteRequest Request(uint32_t attempt, int64_t max_tokens) {
  v1::ExecuteRequest request;
  request.set_request_id("r");
  request.set_attempt(attempt);
  for (const int32_t id : {1, 2, 3}) {
    request.add_token_ids(id);
  }
  request.mutable_stopping()->set_max_tokens(max_tokens);
  return request;
}

struct ExecuteRecord {
  std::vector<int32_t> token_ids;
  int64_t first_position = -1;
  bool finished = false;
  CallResult result;
};

ExecuteRecord ReadAll(ServiceStream& stream) {
  ExecuteRecord record;
  std::string bytes;
  uint64_t seq = 0;
  while (stream.Read(&bytes)) {
    v1::ExecuteEvent event;
    EXPECT_TRUE(event.ParseFromString(bytes));
    EXPECT_EQ(event.seq(), ++seq);
    if (event.has_tokens()) {
      if (record.first_position < 0) record.first_position = event.tokens().first_position();
      record.token_ids.insert(record.token_ids.end(), event.tokens().token_ids().begin(),
                              event.tokens().token_ids().end());
    }
    record.finished = event.has_finished();
  }
  record.result = stream.Finish();
  return record;
}

TEST(EngineService, ASecondAttemptGoesOnWhereTheFirstWas) {
  ServedReplica replica;
  auto first = replica.client().Open(kExecute, Request(1, 10).SerializeAsString());
  const ExecuteRecord whole = ReadAll(*first);
  ASSERT_TRUE(whole.result.ok()) << whole.result.ToString();
  EXPECT_TRUE(whole.finished);
  ASSERT_EQ(whole.token_ids.size(), 10u);

  v1::ExecuteRequest request = Request(2, 10);
  request.add_choices()->mutable_emitted()->Add(whole.token_ids.begin(),
                                                whole.token_ids.begin() + 4);
  auto second = replica.client().Open(kExecute, request.SerializeAsString());
  const ExecuteRecord rest = ReadAll(*second);
  EXPECT_EQ(rest.first_position, 4);
  EXPECT_EQ(rest.token_ids,
            std::vector<int32_t>(whole.token_ids.begin() + 4, whole.token_ids.end()));
}

TEST(EngineService, AHigherAttemptEndsTheRunningOneAndALowerIsRefused) {
  ServedReplicaOptions options;
  options.controller.step_time = absl::Milliseconds(1);
  options.controller.context = 100000;
  ServedReplica replica(options);
  auto old_attempt = replica.client().Open(kExecute, Request(1, 50000).SerializeAsString());
  std::string bytes;
  ASSERT_TRUE(old_attempt->Read(&bytes));
  auto new_attempt = replica.client().Open(kExecute, Request(3, 5).SerializeAsString());
  EXPECT_TRUE(ReadAll(*new_attempt).result.ok());
  while (old_attempt->Read(&bytes)) {
  }
  EXPECT_EQ(old_attempt->Finish().code, absl::StatusCode::kCancelled);
  auto late_attempt = replica.client().Open(kExecute, Request(2, 5).SerializeAsString());
  const ExecuteRecord late = ReadAll(*late_attempt);
  EXPECT_EQ(late.result.code, absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(10)));
}

TEST(EngineService, TheTextAfterTheLastTokenComesWithTheChoicesEnd) {
  ServedReplicaOptions options;
  options.controller.text_tail = "~";
  ServedReplica replica(options);
  v1::ExecuteRequest request = Request(1, 3);
  request.set_want_text(true);
  auto stream = replica.client().Open(kExecute, request.SerializeAsString());
  std::string bytes;
  std::string text;
  std::string tail;
  while (stream->Read(&bytes)) {
    v1::ExecuteEvent event;
    ASSERT_TRUE(event.ParseFromString(bytes));
    text += event.tokens().text();
    tail += event.choice_finished().text_tail();
    EXPECT_TRUE(!event.has_tokens() || event.tokens().token_ids_size() > 0);
  }
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(text.find('~'), std::string::npos);
  EXPECT_EQ(tail, "~");
  // A client of Generate gets it as text.
  const StreamRecord record = Generate(replica.client(), TokenRequest(3));
  ASSERT_EQ(record.texts.size(), 1u);
  EXPECT_EQ(record.texts[0].back(), '~');
}

TEST(EngineService, AnAttemptUnderALeaseEndsWhenItsBalancerIsSilent) {
  ServedReplicaOptions options;
  options.server.door.lease_patience = absl::Milliseconds(100);
  ServedReplica replica(options);
  replica.controller().Hold(true);
  v1::ExecuteRequest request = Request(1, 5);
  request.set_lease("b1");
  auto stream = replica.client().Open(kExecute, request.SerializeAsString());
  const ExecuteRecord record = ReadAll(*stream);
  EXPECT_EQ(record.result.code, absl::StatusCode::kCancelled);
  EXPECT_EQ(record.result.reason, "BY_CLIENT");
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(10)));
}

TEST(EngineService, APingOfALeaseIsAnsweredWithTheEpoch) {
  ServedReplica replica;
  v1::LeasePing ping;
  ping.set_lease("b1");
  auto stream = replica.client().Open("/trireme.v1.Engine/Lease", ping.SerializeAsString());
  std::string bytes;
  ASSERT_TRUE(stream->Read(&bytes));
  v1::LeasePong pong;
  ASSERT_TRUE(pong.ParseFromString(bytes));
  EXPECT_EQ(pong.epoch(), 7u);
  stream->Cancel();
  stream->Finish();
}

TEST(EngineService, ABudgetEndsTheAttempt) {
  ServedReplica replica;
  replica.controller().Hold(true);
  v1::ExecuteRequest request = Request(1, 5);
  request.mutable_budget_left()->set_nanos(20'000'000);
  auto stream = replica.client().Open(kExecute, request.SerializeAsString());
  const ExecuteRecord record = ReadAll(*stream);
  EXPECT_EQ(record.result.code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(record.result.reason, "IN_QUEUE");
}

}  // namespace
}  // namespace trireme::serve

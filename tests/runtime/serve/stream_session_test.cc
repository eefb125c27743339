#include "runtime/serve/stream_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/error_reason.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

constexpr char kResume[] = "/trireme.v1.Inference/Resume";
constexpr char kCancel[] = "/trireme.v1.Inference/Cancel";
constexpr absl::Duration kPatience = absl::Seconds(20);

ServedReplicaOptions WithGrace(absl::Duration grace) {
  ServedReplicaOptions options;
  options.server.door.resume_grace = grace;
  options.controller.context = 100'000;
  return options;
}

v1::GenerateRequest Named(const std::string& id, int64_t tokens) {
  v1::GenerateRequest request = TokenRequest(tokens);
  request.set_request_id(id);
  return request;
}

std::string ResumeOf(const std::string& id, uint64_t after_seq) {
  v1::ResumeRequest request;
  request.set_request_id(id);
  request.set_after_seq(after_seq);
  return request.SerializeAsString();
}

struct Read {
  std::vector<v1::GenerateEvent> events;
  CallResult result;
};

// At most `count` events, then the call is dropped with its connection.
Read ReadSome(const std::string& address, const char* method, const std::string& request,
              size_t count) {
  Read read;
  const auto client = ServiceClient::Connect(address);
  const auto stream = client->Open(method, request);
  std::string bytes;
  while (read.events.size() < count && stream->Read(&bytes)) {
    read.events.emplace_back();
    EXPECT_TRUE(read.events.back().ParseFromString(bytes));
  }
  if (read.events.size() == count) {
    stream->Cancel();
  }
  read.result = stream->Finish();
  return read;
}

constexpr size_t kAll = 1'000'000;

// What the events say, without how they were cut into chunks.
struct Content {
  std::vector<int32_t> ids;
  std::string text;
  bool finished = false;

  bool operator==(const Content&) const = default;
};

Content ContentOf(const std::vector<v1::GenerateEvent>& events) {
  Content content;
  for (const v1::GenerateEvent& event : events) {
    content.ids.insert(content.ids.end(), event.chunk().token_ids().begin(),
                       event.chunk().token_ids().end());
    content.text += event.chunk().text();
    content.finished = content.finished || event.has_finished();
  }
  return content;
}

TEST(StreamSession, AStreamCutTwoHundredTimesIsTheUncutOne) {
  ServedReplicaOptions options = WithGrace(absl::Seconds(60));
  options.controller.step_time = absl::Microseconds(200);
  ServedReplica replica(options);
  const Content uncut = ContentOf(
      ReadSome(replica.address(), kGenerate, Named("uncut", 2000).SerializeAsString(), kAll)
          .events);
  ASSERT_EQ(uncut.ids.size(), 2000u);

  std::mt19937 random(1);
  int cuts = 0;
  for (int round = 0; cuts < 200; ++round) {
    const std::string id = absl::StrCat("cut-", round);
    std::vector<v1::GenerateEvent> events;
    bool first = true;
    while (events.empty() || !events.back().has_finished()) {
      const size_t count = std::uniform_int_distribution<size_t>(1, 30)(random);
      const Read read =
          first ? ReadSome(replica.address(), kGenerate, Named(id, 2000).SerializeAsString(), count)
                : ReadSome(replica.address(), kResume, ResumeOf(id, events.size()), count);
      first = false;
      ++cuts;
      events.insert(events.end(), read.events.begin(), read.events.end());
      ASSERT_LT(cuts, 2000) << read.result.ToString();
    }
    for (size_t index = 0; index < events.size(); ++index) {
      ASSERT_EQ(events[index].seq(), index + 1);
    }
    EXPECT_EQ(ContentOf(events), uncut);
  }
}

TEST(StreamSession, TheSameEventsComeAgainFromAnyPlace) {
  ServedReplica replica(WithGrace(absl::Seconds(60)));
  const Read whole =
      ReadSome(replica.address(), kGenerate, Named("a", 10).SerializeAsString(), kAll);
  ASSERT_TRUE(whole.result.ok()) << whole.result.ToString();
  for (uint64_t after = 0; after <= whole.events.size(); ++after) {
    const Read rest = ReadSome(replica.address(), kResume, ResumeOf("a", after), kAll);
    EXPECT_TRUE(rest.result.ok()) << rest.result.ToString();
    ASSERT_EQ(rest.events.size(), whole.events.size() - after);
    for (size_t index = 0; index < rest.events.size(); ++index) {
      EXPECT_EQ(rest.events[index].SerializeAsString(),
                whole.events[index + after].SerializeAsString());
    }
  }
}

TEST(StreamSession, TokensGoOnWhileNobodyIsConnectedAndTheGraceTimeEndsThem) {
  ServedReplicaOptions options = WithGrace(absl::Milliseconds(300));
  options.controller.step_time = absl::Milliseconds(1);
  ServedReplica replica(options);
  const absl::Time cut = absl::Now();
  const Read some =
      ReadSome(replica.address(), kGenerate, Named("a", 90'000).SerializeAsString(), 5);
  EXPECT_EQ(replica.controller().live_requests(), 1);
  EXPECT_TRUE(replica.controller().WaitUntilIdle(kPatience));
  EXPECT_GE(absl::Now() - cut, absl::Milliseconds(300));
  // It has ended as a cancelled stream, which can still be asked about for a moment, and is then
  // forgotten.
  const absl::Time end = absl::Now() + kPatience;
  Read late;
  do {
    late = ReadSome(replica.address(), kResume, ResumeOf("a", some.events.size()), kAll);
  } while (late.result.code != absl::StatusCode::kNotFound && absl::Now() < end);
  EXPECT_EQ(late.result.code, absl::StatusCode::kNotFound);
  EXPECT_EQ(late.result.reason, kReasonRequest);
}

TEST(StreamSession, AStreamWithoutARequestIdEndsWithItsConnection) {
  ServedReplicaOptions options = WithGrace(absl::Seconds(60));
  options.controller.step_time = absl::Milliseconds(1);
  ServedReplica replica(options);
  ReadSome(replica.address(), kGenerate, TokenRequest(90'000).SerializeAsString(), 3);
  EXPECT_TRUE(replica.controller().WaitUntilIdle(kPatience));
}

TEST(StreamSession, CancelEndsAStreamThatNobodyReads) {
  ServedReplicaOptions options = WithGrace(absl::Seconds(60));
  options.controller.step_time = absl::Milliseconds(1);
  ServedReplica replica(options);
  const Read some =
      ReadSome(replica.address(), kGenerate, Named("a", 90'000).SerializeAsString(), 3);
  v1::CancelRequest cancel;
  cancel.set_request_id("a");
  std::string bytes;
  ASSERT_TRUE(replica.client().Call(kCancel, cancel.SerializeAsString(), &bytes).ok());
  v1::CancelResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_TRUE(response.was_running());
  EXPECT_TRUE(replica.controller().WaitUntilIdle(kPatience));
  const Read rest = ReadSome(replica.address(), kResume, ResumeOf("a", some.events.size()), kAll);
  EXPECT_EQ(rest.result.code, absl::StatusCode::kCancelled) << rest.result.ToString();
}

TEST(StreamSession, ASecondReaderTakesTheStreamFromTheFirst) {
  ServedReplicaOptions options = WithGrace(absl::Seconds(60));
  options.controller.step_time = absl::Milliseconds(1);
  ServedReplica replica(options);
  const auto first = replica.client().Open(kGenerate, Named("a", 300).SerializeAsString());
  std::string bytes;
  ASSERT_TRUE(first->Read(&bytes));
  const Read second = ReadSome(replica.address(), kResume, ResumeOf("a", 0), kAll);
  EXPECT_TRUE(second.result.ok()) << second.result.ToString();
  EXPECT_EQ(ContentOf(second.events).ids.size(), 300u);
  while (first->Read(&bytes)) {
  }
  EXPECT_EQ(first->Finish().code, absl::StatusCode::kCancelled);
}

TEST(StreamSession, WhatCannotBeResumedIsSaidByName) {
  ServedReplica replica(WithGrace(absl::Seconds(60)));
  ASSERT_TRUE(Generate(replica.client(), Named("a", 5)).result.ok());
  EXPECT_EQ(ReadSome(replica.address(), kResume, ResumeOf("b", 0), kAll).result.reason,
            kReasonRequest);
  const Read ahead = ReadSome(replica.address(), kResume, ResumeOf("a", 1000), kAll);
  EXPECT_EQ(ahead.result.code, absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(ahead.result.violations.size(), 1u);
  EXPECT_EQ(ahead.result.violations[0].field, "after_seq");
  // Without a grace time nothing is kept.
  ServedReplica lone;
  const Read refused = ReadSome(lone.address(), kResume, ResumeOf("a", 0), kAll);
  EXPECT_EQ(refused.result.code, absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refused.result.reason, kReasonMethodNotSupported);
}

TEST(StreamSession, AnIdIsFreeAgainWhenItsStreamHasEnded) {
  ServedReplica replica(WithGrace(absl::Seconds(60)));
  ASSERT_TRUE(Generate(replica.client(), Named("a", 5)).result.ok());
  // The first call may still be on its way out.
  ASSERT_TRUE(replica.server().WaitForStreams(kPatience));
  ASSERT_TRUE(Generate(replica.client(), Named("a", 7)).result.ok());
  const Read again = ReadSome(replica.address(), kResume, ResumeOf("a", 0), kAll);
  EXPECT_EQ(ContentOf(again.events).ids.size(), 7u);
}

TEST(StreamSession, ARunningStreamThatLostItsClientKeepsItsId) {
  ServedReplicaOptions options = WithGrace(absl::Seconds(60));
  options.controller.step_time = absl::Milliseconds(1);
  ServedReplica replica(options);
  ReadSome(replica.address(), kGenerate, Named("a", 90'000).SerializeAsString(), 3);
  EXPECT_EQ(Generate(replica.client(), Named("a", 5)).result.code,
            absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace trireme::serve

#include "runtime/engine/controller_mailbox.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "runtime/base/error_reason.h"

namespace trireme::engine {
namespace {

std::unique_ptr<LiveRequest> MakeLive(const std::string& id) {
  schedule::Request request;
  request.id = id;
  request.prompt = {1};
  request.stopping.max_tokens = 1;
  auto live = LiveRequest::CreateGenerate(request, std::make_shared<ResponseStream>(1), nullptr, 10,
                                          absl::UnixEpoch());
  EXPECT_TRUE(live.ok());
  return *std::move(live);
}

TEST(ControllerMailboxTest, RefusesASecondLiveRequestOfOneId) {
  ControllerMailbox mailbox(1, 10);
  EXPECT_TRUE(mailbox.Submit(MakeLive("a")).ok());
  const absl::Status status = mailbox.Submit(MakeLive("a"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(status), kReasonRequestId);
  ControllerMail mail;
  mailbox.Wait(absl::ZeroDuration(), &mail);
  ASSERT_EQ(mail.requests.size(), 1u);
  mailbox.Forget(*mail.requests[0]);
  EXPECT_TRUE(mailbox.Submit(MakeLive("a")).ok());
}

TEST(ControllerMailboxTest, RefusesWhenTheQueueIsFullUntilARequestLeavesIt) {
  ControllerMailbox mailbox(1, 2);
  EXPECT_TRUE(mailbox.Submit(MakeLive("a")).ok());
  EXPECT_TRUE(mailbox.Submit(MakeLive("b")).ok());
  const absl::Status status = mailbox.Submit(MakeLive("c"));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), kReasonOverloaded);
  mailbox.LeaveQueue();
  EXPECT_TRUE(mailbox.Submit(MakeLive("c")).ok());
  EXPECT_EQ(mailbox.queued_requests(), 2);
}

TEST(ControllerMailboxTest, CancelsByNameWhileTheRequestLives) {
  ControllerMailbox mailbox(1, 2);
  EXPECT_FALSE(mailbox.Cancel("a"));
  EXPECT_TRUE(mailbox.Submit(MakeLive("a")).ok());
  EXPECT_TRUE(mailbox.Cancel("a"));
  ControllerMail mail;
  mailbox.Wait(absl::ZeroDuration(), &mail);
  EXPECT_TRUE(mail.requests[0]->cancelled());
  mailbox.Forget(*mail.requests[0]);
  EXPECT_FALSE(mailbox.Cancel("a"));
}

TEST(ControllerMailboxTest, GivesResultsInOrderAndTheirMemoryBack) {
  ControllerMailbox mailbox(2, 2);
  StepResult result;
  result.step = 1;
  result.token_ids.reserve(50);
  mailbox.PushResult(result);
  result.step = 2;
  mailbox.PushResult(result);
  ControllerMail mail;
  mailbox.Wait(absl::InfiniteDuration(), &mail);
  ASSERT_EQ(mail.result_count, 2u);
  EXPECT_EQ(mail.results[0].step, 1u);
  EXPECT_EQ(mail.results[1].step, 2u);
  mailbox.Wait(absl::ZeroDuration(), &mail);
  EXPECT_EQ(mail.result_count, 0u);
  // The mail's two places swap with the mailbox's two: after two rounds the first buffer is back.
  for (int round = 0; round < 2; ++round) {
    mailbox.PushResult(result);
    mailbox.Wait(absl::ZeroDuration(), &mail);
  }
  EXPECT_GE(result.token_ids.capacity() + mail.results[0].token_ids.capacity(), 50u);
}

TEST(ControllerMailboxTest, StopsWhenMoreResultsComeThanPlansWereSent) {
  ControllerMailbox mailbox(1, 2);
  StepResult result;
  mailbox.PushResult(result);
  mailbox.PushResult(result);
  ControllerMail mail;
  mailbox.Wait(absl::InfiniteDuration(), &mail);
  EXPECT_EQ(mail.stop_reason.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(mail.result_count, 1u);
}

TEST(ControllerMailboxTest, TakesNothingInAfterStop) {
  ControllerMailbox mailbox(1, 2);
  mailbox.Stop(WithReason(absl::UnavailableError("rank 1 is gone"), kReasonRankLost));
  mailbox.Stop(absl::UnavailableError("later"));
  EXPECT_EQ(mailbox.Submit(MakeLive("a")).message(), "rank 1 is gone");
  StepResult result;
  mailbox.PushResult(result);
  ControllerMail mail;
  mailbox.Wait(absl::InfiniteDuration(), &mail);
  EXPECT_EQ(mail.result_count, 0u);
  EXPECT_EQ(mail.stop_reason.message(), "rank 1 is gone");
}

TEST(ControllerMailboxTest, DrainRefusesNewRequestsAndWaitsForTheLiveOnes) {
  ControllerMailbox mailbox(1, 2);
  EXPECT_TRUE(mailbox.Submit(MakeLive("a")).ok());
  mailbox.Drain([] {});
  EXPECT_TRUE(mailbox.draining());
  EXPECT_EQ(ReasonOf(mailbox.Submit(MakeLive("b"))), kReasonDraining);
  EXPECT_TRUE(mailbox.TakeIdleCallbacks().empty());
  ControllerMail mail;
  mailbox.Wait(absl::ZeroDuration(), &mail);
  mailbox.Forget(*mail.requests[0]);
  EXPECT_EQ(mailbox.TakeIdleCallbacks().size(), 1u);
  EXPECT_TRUE(mailbox.TakeIdleCallbacks().empty());
}

}  // namespace
}  // namespace trireme::engine

// The controller's loop when things end early: cancellation, deadlines, stalls, faults, drain,
// stop.
#include "runtime/engine/controller_loop.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/mutex.h"
#include "runtime/model/row_faults.h"
#include "tests/support/controller_fixture.h"
#include "tests/support/manual_clock.h"

namespace trireme::engine {
namespace {

using testing::Answer;
using testing::ControllerFixture;
using testing::ControllerFixtureOptions;
using testing::FakeGenerate;
using testing::kFixtureVocabulary;
using testing::MakeRequest;

// The engine thread works on its own; what it will do is waited for, with no bound but the test's.
template <typename Condition>
void WaitUntil(const Condition& condition) {
  while (!condition()) {
    std::this_thread::yield();
  }
}

TEST(ControllerLoopTest, CancelEndsARequestOnceInEveryPhase) {
  ControllerFixtureOptions options;
  options.controller.limits.sequences = 2;
  options.controller.limits.tokens = 16;
  ControllerFixture fixture(options);
  Controller& controller = fixture.controller();
  fixture.rank().Hold(true);
  // Plan 1 holds the decode's prompt and the first chunk of the long prompt.
  const auto decoding = fixture.Submit(MakeRequest("decoding", {1, 2}, 100));
  fixture.rank().WaitForPlans(1);
  const auto prefilling =
      fixture.Submit(MakeRequest("prefilling", std::vector<int32_t>(100, 4), 20));
  const auto queued = fixture.Submit(MakeRequest("queued", {1}, 20));
  fixture.rank().Release();
  fixture.rank().WaitForPlans(2);
  EXPECT_TRUE(controller.Cancel("queued"));
  EXPECT_TRUE(controller.Cancel("prefilling"));
  EXPECT_TRUE(controller.Cancel("decoding"));
  for (const auto& stream : {queued, prefilling, decoding}) {
    const Answer answer = ControllerFixture::Read(*stream);
    EXPECT_EQ(answer.ending.status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(ReasonOf(answer.ending.status), kReasonByClient);
  }
  EXPECT_FALSE(controller.Cancel("queued"));
  WaitUntil([&] { return controller.load().blocks_free == controller.load().blocks_total; });
  // The plan in flight is answered later and changes nothing.
  fixture.rank().Hold(false);
  const Answer next = ControllerFixture::Read(*fixture.Submit(MakeRequest("decoding", {9}, 30)));
  EXPECT_EQ(next.token_ids, FakeGenerate({9}, 30, kFixtureVocabulary));
}

TEST(ControllerLoopTest, AReaderThatGoesAwayFreesItsSequenceAtTheNextStep) {
  ControllerFixture fixture({});
  fixture.rank().Hold(true);
  const auto stream = fixture.Submit(MakeRequest("a", {1, 2}, 100));
  fixture.rank().WaitForPlans(1);
  stream->Cancel();
  fixture.rank().Release();
  const Answer answer = ControllerFixture::Read(*stream);
  EXPECT_EQ(answer.ending.status.code(), absl::StatusCode::kCancelled);
  EXPECT_LE(answer.token_ids.size(), 1u);
}

TEST(ControllerLoopTest, DeadlinesEndRequestsInQueueAndInMidRun) {
  testing::ManualClock clock;
  ControllerFixtureOptions options;
  options.clock = &clock;
  options.controller.limits.sequences = 1;
  options.controller.stall_timeout = absl::Hours(1);
  ControllerFixture fixture(options);
  fixture.rank().Hold(true);
  schedule::Request request = MakeRequest("running", {1, 2}, 100);
  request.deadline = clock.Now() + absl::Seconds(60);
  const auto running = fixture.Submit(request);
  fixture.rank().WaitForPlans(1);
  request.id = "queued";
  request.deadline = clock.Now() + absl::Seconds(30);
  const auto queued = fixture.Submit(request);
  clock.Advance(absl::Seconds(31));
  fixture.rank().Release();  // any mail makes the loop look at its clock
  const Answer in_queue = ControllerFixture::Read(*queued);
  EXPECT_EQ(in_queue.ending.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ReasonOf(in_queue.ending.status), kReasonInQueue);
  EXPECT_EQ(in_queue.accepts, 0);
  EXPECT_EQ(in_queue.ending.timings.queue, absl::Seconds(31));
  fixture.rank().WaitForPlans(2);
  clock.Advance(absl::Seconds(30));
  fixture.rank().Release();
  const Answer in_run = ControllerFixture::Read(*running);
  EXPECT_EQ(in_run.ending.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ReasonOf(in_run.ending.status), kReasonRunning);
  WaitUntil([&] { return fixture.controller().load().blocks_free == 64; });
}

TEST(ControllerLoopTest, ADeadlineWakesASleepingLoop) {
  ControllerFixture fixture({});
  fixture.rank().Hold(true);
  schedule::Request request = MakeRequest("a", {1, 2}, 100);
  request.deadline = SteadyClock()->Now() + absl::Milliseconds(30);
  const Answer answer = ControllerFixture::Read(*fixture.Submit(request));
  EXPECT_EQ(ReasonOf(answer.ending.status), kReasonRunning);
}

TEST(ControllerLoopTest, AStepThatNeverFinishesEndsTheReplica) {
  ControllerFixtureOptions options;
  options.controller.stall_timeout = absl::Milliseconds(50);
  ControllerFixture fixture(options);
  fixture.rank().Hold(true);
  const Answer answer = ControllerFixture::Read(*fixture.Submit(MakeRequest("a", {1}, 3)));
  EXPECT_EQ(answer.ending.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(answer.ending.status), kReasonRankLost);
  EXPECT_THAT(std::string(answer.ending.status.message()), ::testing::HasSubstr("stalled"));
  const absl::Status refusal =
      fixture.controller().Submit(MakeRequest("b", {1}, 3), std::make_shared<ResponseStream>(1));
  EXPECT_EQ(refusal.code(), absl::StatusCode::kUnavailable);
}

TEST(ControllerLoopTest, AnIdleReplicaDoesNotStall) {
  testing::ManualClock clock;
  ControllerFixtureOptions options;
  options.clock = &clock;
  options.controller.stall_timeout = absl::Seconds(1);
  ControllerFixture fixture(options);
  EXPECT_TRUE(
      ControllerFixture::Read(*fixture.Submit(MakeRequest("a", {1}, 3))).ending.status.ok());
  clock.Advance(absl::Hours(1));
  EXPECT_TRUE(
      ControllerFixture::Read(*fixture.Submit(MakeRequest("b", {1}, 3))).ending.status.ok());
}

TEST(ControllerLoopTest, ALostRankEndsEveryStreamWithItsReason) {
  ControllerFixtureOptions options;
  options.controller.limits.sequences = 1;
  ControllerFixture fixture(options);
  fixture.rank().Hold(true);
  const auto running = fixture.Submit(MakeRequest("a", {1}, 3));
  const auto queued = fixture.Submit(MakeRequest("b", {1}, 3));
  fixture.rank().WaitForPlans(1);
  fixture.pipeline().ReportLoss(absl::UnavailableError("rank 3 on host n2 died at step 1"));
  for (const auto& stream : {running, queued}) {
    const Answer answer = ControllerFixture::Read(*stream);
    EXPECT_EQ(answer.ending.status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ReasonOf(answer.ending.status), kReasonRankLost);
    EXPECT_THAT(std::string(answer.ending.status.message()), ::testing::HasSubstr("rank 3"));
  }
}

TEST(ControllerLoopTest, AFaultyResultEndsTheReplica) {
  void (*const faults[])(StepResult*) = {
      [](StepResult* result) { result->step += 1; },
      [](StepResult* result) { result->token_ids.push_back(1); },
      [](StepResult* result) { result->logprobs.clear(); },
      [](StepResult* result) { result->token_ids[0] = kFixtureVocabulary; },
      [](StepResult* result) { result->token_ids[0] = -2; },
      [](StepResult* result) { result->token_ids[0] = kNoToken; },  // and no fault says why
      [](StepResult* result) { result->faults = {{.sequence = 1}}; },
      [](StepResult* result) { result->faults = {{.sequence = -1}}; },
      [](StepResult* result) {
        result->faults = {{.sequence = 0}, {.sequence = 0}};
      },
      [](StepResult* result) { result->logits.resize(3); },
      [](StepResult* result) { result->status = absl::InternalError("logit of token 4 is nan"); },
  };
  for (void (*fault)(StepResult*) : faults) {
    ControllerFixtureOptions options;
    options.fault = fault;
    ControllerFixture fixture(options);
    const Answer answer = ControllerFixture::Read(*fixture.Submit(MakeRequest("a", {1}, 3)));
    EXPECT_EQ(answer.ending.status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(ReasonOf(answer.ending.status), kReasonBug);
    EXPECT_TRUE(answer.token_ids.empty());
  }
}

TEST(ControllerLoopTest, D12_ValuesThatAreNoNumbersEndTheirRequestOnly) {
  struct Case {
    void (*fault)(StepResult*);
    const char* place;
  };
  // Of the second sequence of a step of two.
  const Case cases[] = {{[](StepResult* result) {
                           if (result->token_ids.size() == 2) {
                             result->token_ids[1] = kNoToken;
                             result->faults = {{.sequence = 1, .place = model::kFaultInOutput}};
                           }
                         },
                         "from the output matrix on"},
                        {[](StepResult* result) {
                           if (result->token_ids.size() == 2) {
                             result->faults = {{.sequence = 1, .place = 17}};
                           }
                         },
                         "from layer 17 on"},
                        {[](StepResult* result) {
                           if (result->token_ids.size() == 2) {
                             result->faults = {{.sequence = 1, .place = model::kFaultInEmbedding}};
                           }
                         },
                         "from the embedding on"}};
  for (const Case& a_case : cases) {
    ControllerFixtureOptions options;
    options.fault = a_case.fault;
    ControllerFixture fixture(options);
    fixture.rank().Hold(true);
    const auto good = fixture.Submit(MakeRequest("good", {1}, 30));
    fixture.rank().WaitForPlans(1);
    const auto bad = fixture.Submit(MakeRequest("bad", {2}, 30));
    fixture.rank().Hold(false);
    const Answer broken = ControllerFixture::Read(*bad);
    EXPECT_EQ(broken.ending.status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(ReasonOf(broken.ending.status), kReasonBug);
    EXPECT_THAT(std::string(broken.ending.status.message()), ::testing::HasSubstr(a_case.place));
    EXPECT_TRUE(broken.token_ids.empty());
    EXPECT_EQ(ControllerFixture::Read(*good).token_ids, FakeGenerate({1}, 30, kFixtureVocabulary));
  }
}

// Chunks of a prompt draw nothing, and a score gives rows: both end at the first fault.
TEST(ControllerLoopTest, D12_AFaultEndsAPromptAndAScoreToo) {
  ControllerFixtureOptions options;
  options.fault = [](StepResult* result) { result->faults = {{.sequence = 0, .place = 3}}; };
  ControllerFixture fixture(options);
  const Answer answer = ControllerFixture::Read(
      *fixture.Submit(MakeRequest("a", std::vector<int32_t>(100, 1), 3)));  // two chunks
  EXPECT_EQ(answer.ending.status.code(), absl::StatusCode::kInternal);
  int64_t rows = 0;
  const absl::Status score =
      fixture.controller().Score({1, 2, 3}, [&rows](int64_t, absl::Span<const float>) { ++rows; });
  EXPECT_EQ(score.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(rows, 0);
}

TEST(ControllerLoopTest, StopEndsEveryStreamAndIsIdempotent) {
  ControllerFixture fixture({});
  fixture.rank().Hold(true);
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (int index = 0; index < 20; ++index) {
    streams.push_back(fixture.Submit(MakeRequest(absl::StrCat(index), {1, 2, 3}, 50)));
  }
  absl::Status score;
  std::thread scorer([&fixture, &score] {
    score = fixture.controller().Score({1, 2, 3}, [](int64_t, absl::Span<const float>) {});
  });
  WaitUntil([&] { return fixture.controller().load().waiting_requests >= 13; });
  const absl::Status reason =
      WithReason(absl::UnavailableError("the node goes down"), kReasonReplicaLost);
  fixture.controller().Stop(reason);
  for (const auto& stream : streams) {
    EXPECT_EQ(ControllerFixture::Read(*stream).ending.status, reason);
  }
  scorer.join();
  EXPECT_EQ(score, reason);
  fixture.controller().Stop(absl::InternalError("another"));
  EXPECT_EQ(
      fixture.controller().Submit(MakeRequest("a", {1}, 1), std::make_shared<ResponseStream>(1)),
      reason);
}

TEST(ControllerLoopTest, StopMayBeCalledByAListener) {
  bool called = false;  // the engine thread's; it outlives the controller
  ControllerFixture fixture({});
  auto stream = std::make_shared<ResponseStream>(10);
  stream->SetListener([&called, controller = &fixture.controller()] {
    if (!called) {
      called = true;
      controller->Stop(absl::UnavailableError("from a listener"));
    }
  });
  ASSERT_TRUE(fixture.controller().Submit(MakeRequest("a", {1}, 10), stream).ok());
  const Answer answer = ControllerFixture::Read(*stream);
  EXPECT_EQ(answer.ending.status.message(), "from a listener");
}

TEST(ControllerLoopTest, DrainFinishesWhatRunsAndRefusesTheRest) {
  ControllerFixture fixture({});
  fixture.rank().Hold(true);
  const auto stream = fixture.Submit(MakeRequest("a", {1}, 5));
  fixture.rank().WaitForPlans(1);
  Notification idle;
  fixture.controller().Drain([&idle] { idle.Notify(); });
  EXPECT_EQ(ReasonOf(fixture.controller().Submit(MakeRequest("b", {1}, 5),
                                                 std::make_shared<ResponseStream>(1))),
            kReasonDraining);
  EXPECT_FALSE(idle.HasBeenNotified());
  fixture.rank().Hold(false);
  EXPECT_EQ(ControllerFixture::Read(*stream).token_ids.size(), 5u);
  idle.WaitForNotification();
}

TEST(ControllerLoopTest, KeepsAsManyPlansInFlightAsThePipelineHasStages) {
  ControllerFixtureOptions options;
  options.depth = 3;
  ControllerFixture fixture(options);
  fixture.rank().Hold(true);
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (int index = 0; index < 6; ++index) {
    streams.push_back(fixture.Submit(MakeRequest(absl::StrCat(index), {index}, 20)));
  }
  // The fake rank takes one plan at a time; the others lie in its queue until it answers.
  fixture.rank().WaitForPlans(1);
  fixture.rank().Hold(false);
  for (int32_t index = 0; index < 6; ++index) {
    EXPECT_EQ(ControllerFixture::Read(*streams[static_cast<size_t>(index)]).token_ids,
              FakeGenerate({index}, 20, kFixtureVocabulary));
  }
}

}  // namespace
}  // namespace trireme::engine

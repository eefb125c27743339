#include "runtime/engine/process_pipeline.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/comm/tcp_communicator.h"
#include "runtime/comm/thread_communicator.h"

namespace trireme::engine {
namespace {

constexpr StepLimits kLimits = {
    .tokens = 16, .sequences = 4, .logit_rows = 4, .context = 64, .blocks = 16};

// The control group of ranks that are threads of this test.
std::vector<std::unique_ptr<comm::Communicator>> MakeControl(int size) {
  auto world = comm::MakeThreadCommunicators(size);
  EXPECT_TRUE(world.ok());
  const comm::TcpOptions options = {
      .places = std::vector<comm::RankPlace>(size, {.host = "here", .identity = "here"})};
  std::vector<std::unique_ptr<comm::Communicator>> control(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto made = comm::MakeTcpCommunicator(*(*world)[rank], options);
      EXPECT_TRUE(made.ok()) << made.status();
      control[rank] = *std::move(made);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return control;
}

// Rank 1 answers, and closes its connections as soon as it has its shutdown; after each plan sent,
// rank 0 waits until its result reader has seen that, or a moment.
TEST(ProcessPipelineTest, AShutdownReachesEveryRankThoughTheFirstLeaveAtOnce) {
  std::vector<std::unique_ptr<comm::Communicator>> control = MakeControl(3);
  Notification reader_ended;
  absl::Status ends[3];
  {
    ProcessPipeline pipeline(
        control[0].get(), /*stages=*/2, /*result_rank=*/1, kLimits,
        {.on_plan = [](uint64_t) {},
         .explain =
             [&reader_ended](const absl::Status& symptom) {
               if (!symptom.ok()) {
                 reader_ended.Notify();
               } else {
                 reader_ended.WaitForNotificationWithTimeout(absl::Milliseconds(300));
               }
               return symptom;
             }});
    pipeline.SetHandlers([](StepResult&&) {}, [](const absl::Status&) {});
    std::vector<std::thread> ranks;
    for (const int rank : {1, 2}) {
      ranks.emplace_back([&, rank] {
        StepPlan plan;
        ends[rank] = MakeProcessPlanSource(control[rank].get(), kLimits)->ReceivePlan(&plan);
        EXPECT_EQ(plan.kind, PlanKind::kShutdown);
        control[rank].reset();
      });
    }
    EXPECT_TRUE(pipeline.SendShutdown().ok());
    control[0]->Abort(absl::CancelledError("the test is over"));
    for (std::thread& rank : ranks) {
      rank.join();
    }
  }
  EXPECT_TRUE(ends[1].ok()) << ends[1];
  EXPECT_TRUE(ends[2].ok()) << ends[2];
}

}  // namespace
}  // namespace trireme::engine

// A step allocates nothing on the engine thread once warm, whatever the ranks do.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/controller.h"
#include "runtime/engine/in_process_pipeline.h"
#include "tests/support/allocation_count.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/controller_fixture.h"

namespace trireme::engine {
namespace {

constexpr uint64_t kWarmStep = 200;
constexpr uint64_t kLastStep = 1200;

// SendPlan runs on the engine thread, so it can read that thread's count; results come on the
// rank's. It waits until all requests are there: one that came after the warm-up would count.
class CountingPipeline : public Pipeline {
 public:
  explicit CountingPipeline(InProcessPipeline* road) : road_(road) {}
  int depth() const override { return road_->depth(); }
  void SetHandlers(ResultHandler on_result, LossHandler on_loss) override {
    road_->SetHandlers(std::move(on_result), std::move(on_loss));
  }
  void Start() { started_.Notify(); }
  absl::Status SendPlan(const StepPlan& plan) override {
    started_.WaitForNotification();
    if (plan.step == kWarmStep) {
      warm_count_ = testing::AllocationsOfThisThread();
    }
    if (plan.step == kLastStep) {
      last_count_ = testing::AllocationsOfThisThread();
    }
    return road_->SendPlan(plan);
  }
  int64_t warm_count() const { return warm_count_; }
  int64_t last_count() const { return last_count_; }

 private:
  InProcessPipeline* const road_;
  Notification started_;
  int64_t warm_count_ = -1;
  int64_t last_count_ = -2;
};

void DecodeEightSequences(int depth, bool with_text) {
  const StepLimits limits = {
      .tokens = 64, .sequences = 8, .logit_rows = 8, .context = 2048, .blocks = 1024};
  const ControllerOptions options = {.limits = limits,
                                     .queued_requests_max = 16,
                                     .vocabulary = testing::kByteTokenizerVocabulary,
                                     .stall_timeout = absl::Seconds(60)};
  const auto tokenizer = testing::MakeByteTokenizer();
  InProcessPipeline road(1, depth, limits);
  testing::FakeRankThread rank(limits, testing::kByteTokenizerVocabulary, &road);
  CountingPipeline pipeline(&road);
  auto controller =
      Controller::Create(options, &pipeline, with_text ? tokenizer.get() : nullptr, SteadyClock());
  ASSERT_TRUE(controller.ok());
  // With a depth of two each sequence is in every other step.
  const auto tokens_wanted = static_cast<int64_t>(kLastStep) / depth + 20;
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (int32_t index = 0; index < 8; ++index) {
    schedule::Request request =
        testing::MakeRequest(absl::StrCat(index), {index, 1, 2}, tokens_wanted);
    request.stopping.ignore_eos = true;
    if (with_text) {
      request.stopping.stop_strings = {"no text has this", "nor this"};
    }
    streams.push_back(std::make_shared<ResponseStream>(tokens_wanted));
    ASSERT_TRUE((*controller)->Submit(request, streams.back()).ok());
  }
  pipeline.Start();
  for (const auto& stream : streams) {
    const testing::Answer answer = testing::ControllerFixture::Read(*stream);
    EXPECT_TRUE(answer.ending.status.ok());
    EXPECT_EQ(answer.token_ids.size(), static_cast<size_t>(tokens_wanted));
  }
  controller->reset();
  EXPECT_EQ(pipeline.last_count() - pipeline.warm_count(), 0);
}

TEST(StepAllocationTest, DecodingAllocatesNothingOnTheEngineThread) {
  DecodeEightSequences(1, /*with_text=*/false);
}

TEST(StepAllocationTest, TextAndStopStringsAllocateNothingEither) {
  DecodeEightSequences(1, /*with_text=*/true);
}

TEST(StepAllocationTest, SeveralPlansInFlightAllocateNothingEither) {
  DecodeEightSequences(2, /*with_text=*/true);
}

}  // namespace
}  // namespace trireme::engine

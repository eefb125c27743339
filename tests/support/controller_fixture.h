// A controller over a FakeRank in one process, with what tests ask of it.
#ifndef TRIREME_TESTS_SUPPORT_CONTROLLER_FIXTURE_H_
#define TRIREME_TESTS_SUPPORT_CONTROLLER_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/engine/controller.h"
#include "runtime/engine/in_process_pipeline.h"
#include "tests/support/fake_model.h"
#include "tests/support/fake_rank.h"

namespace trireme::testing {

inline constexpr int32_t kFixtureVocabulary = 500;

struct ControllerFixtureOptions {
  engine::ControllerOptions controller = {
      .limits = {.tokens = 64, .sequences = 8, .logit_rows = 8, .context = 128, .blocks = 64},
      .queued_requests_max = 1024,
      .vocabulary = kFixtureVocabulary,
      .stall_timeout = absl::Seconds(60)};
  int depth = 1;
  const text::Tokenizer* tokenizer = nullptr;
  Clock* clock = SteadyClock();
  void (*fault)(engine::StepResult*) = nullptr;
};

// What one stream gave, joined.
struct Answer {
  int accepts = 0;
  std::vector<int32_t> token_ids;
  std::vector<float> logprobs;
  std::string text;
  int64_t first_position = -1;  // of the first token
  engine::Ending ending;
};

class ControllerFixture {
 public:
  explicit ControllerFixture(const ControllerFixtureOptions& options)
      : pipeline_(1, options.depth, options.controller.limits),
        rank_(options.controller.limits, static_cast<int32_t>(options.controller.vocabulary),
              &pipeline_) {
    rank_.SetFault(options.fault);
    auto controller = engine::Controller::Create(options.controller, &pipeline_, options.tokenizer,
                                                 options.clock);
    EXPECT_TRUE(controller.ok()) << controller.status();
    controller_ = *std::move(controller);
  }
  ~ControllerFixture() {
    rank_.Hold(false);
    controller_.reset();
  }

  engine::Controller& controller() { return *controller_; }
  engine::InProcessPipeline& pipeline() { return pipeline_; }
  FakeRankThread& rank() { return rank_; }

  std::shared_ptr<engine::ResponseStream> Submit(const schedule::Request& request) {
    auto stream = std::make_shared<engine::ResponseStream>(request.stopping.max_tokens);
    const absl::Status status = controller_->Submit(request, stream);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? stream : nullptr;
  }

  // Reads a stream to its end.
  static Answer Read(engine::ResponseStream& stream) {
    Answer answer;
    engine::Delta delta;
    while (true) {
      stream.Wait();
      if (!stream.Take(&delta)) {
        ADD_FAILURE() << "read after the ending";
        return answer;
      }
      answer.accepts += delta.accepted ? 1 : 0;
      if (!delta.token_ids.empty() && answer.first_position < 0) {
        answer.first_position = delta.first_position;
      }
      if (!delta.token_ids.empty()) {
        EXPECT_EQ(delta.first_position,
                  answer.first_position + static_cast<int64_t>(answer.token_ids.size()));
      }
      answer.token_ids.insert(answer.token_ids.end(), delta.token_ids.begin(),
                              delta.token_ids.end());
      answer.logprobs.insert(answer.logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
      answer.text += delta.text;
      if (delta.ending.has_value()) {
        answer.ending = *std::move(delta.ending);
        EXPECT_FALSE(stream.Take(&delta));
        return answer;
      }
    }
  }

 private:
  engine::InProcessPipeline pipeline_;
  FakeRankThread rank_;
  std::unique_ptr<engine::Controller> controller_;
};

inline schedule::Request MakeRequest(std::string id, std::vector<int32_t> prompt,
                                     int64_t max_tokens) {
  schedule::Request request;
  request.id = std::move(id);
  request.prompt = std::move(prompt);
  request.stopping.max_tokens = max_tokens;
  return request;
}

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_CONTROLLER_FIXTURE_H_

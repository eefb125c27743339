// A whole replica in motion allocates nothing once warm: engine thread, rank threads, their compute
// pools and communicators. Only the test's own thread, which reads the answers, may.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/comm/shm_communicator.h"
#include "runtime/comm/tcp_communicator.h"
#include "runtime/comm/thread_communicator.h"
#include "runtime/engine/local_replica.h"
#include "runtime/engine/process_pipeline.h"
#include "runtime/engine/response_stream.h"
#include "runtime/weights/checkpoint.h"
#include "tests/support/allocation_count.h"

namespace trireme::engine {
namespace {

constexpr char kLongModel[] = "tests/data/families/llama_rope_yarn/model.gguf";  // 4096 positions
constexpr char kQuantizedModel[] = "tests/data/gguf-files/good/base-bpe.gguf";   // 128 positions

RankOptions Options(const topology::Layout& layout, int32_t context, int threads) {
  RankOptions options;
  options.layout = layout;
  options.threads = threads;
  options.limits = {
      .tokens = 16, .sequences = 4, .logit_rows = 4, .context = context, .blocks = 1024};
  return options;
}

std::unique_ptr<weights::Checkpoint> Open(const std::string& path) {
  auto checkpoint = weights::Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return *std::move(checkpoint);
}

std::unique_ptr<Replica> Start(const std::string& path, const topology::Layout& layout,
                               int32_t context, int threads) {
  auto replica = StartLocalReplica(*Open(path), {.ranks = Options(layout, context, threads)});
  EXPECT_TRUE(replica.ok()) << replica.status();
  return *std::move(replica);
}

std::shared_ptr<ResponseStream> Submit(Controller& controller, absl::string_view name,
                                       int32_t prompt_tokens, int64_t max_tokens) {
  schedule::Request request;
  request.id = std::string(name);
  for (int32_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back((i * 37 + 11) % 200);
  }
  request.stopping.max_tokens = max_tokens;
  request.stopping.ignore_eos = true;
  request.want_text = false;
  request.want_logprobs = true;
  request.sampling = {.temperature = 1.0f, .top_k = 50, .top_p = 0.95f, .min_p = 0.01f, .seed = 7};
  auto stream = std::make_shared<ResponseStream>(max_tokens);
  EXPECT_TRUE(controller.Submit(std::move(request), stream).ok());
  return stream;
}

// Reads `stream` until `is_enough` of the tokens so far, or its end; false at the end.
template <typename Condition>
bool ReadUntil(ResponseStream& stream, int64_t* tokens, Condition is_enough) {
  Delta delta;
  while (!is_enough()) {
    stream.Wait();
    if (!stream.Take(&delta) || delta.ending.has_value()) {
      return false;
    }
    *tokens = delta.first_position + static_cast<int64_t>(delta.token_ids.size());
  }
  return true;
}

// Allocations while the slowest of four sampled sequences goes from `first` to `last` tokens.
int64_t AllocationsOfDecoding(Controller& controller, int64_t first, int64_t last) {
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (int index = 0; index < 4; ++index) {
    streams.push_back(Submit(controller, absl::StrCat("decode-", index), 1 + 3 * index, last + 10));
  }
  int64_t tokens = 0;
  EXPECT_TRUE(ReadUntil(*streams[3], &tokens, [&] { return tokens >= first; }));
  const int64_t before = testing::AllocationsOfAllThreads();
  EXPECT_TRUE(ReadUntil(*streams[3], &tokens, [&] { return tokens >= last; }));
  return testing::AllocationsOfAllThreads() - before;
}

// Allocations while a long prompt goes through in chunks, beside a sequence that decodes.
int64_t AllocationsOfPrefill(Controller& controller, int32_t prompt_tokens) {
  const auto decoding = Submit(controller, "beside", 3, 3000);
  int64_t tokens = 0;
  EXPECT_TRUE(ReadUntil(*decoding, &tokens, [&] { return tokens >= 100; }));
  const auto prompt = Submit(controller, "prompt", prompt_tokens, 1);
  const auto queued_below = [&controller](int64_t limit) {
    return [&controller, limit] {
      const Load load = controller.load();
      return load.running_sequences == 2 && load.queued_tokens < limit;
    };
  };
  EXPECT_TRUE(ReadUntil(*decoding, &tokens, queued_below(prompt_tokens - 100)));
  const int64_t before = testing::AllocationsOfAllThreads();
  EXPECT_TRUE(ReadUntil(*decoding, &tokens, queued_below(300)));
  return testing::AllocationsOfAllThreads() - before;
}

// Ranks that talk as processes do, over sockets and shared memory, but are threads of this test.
class ConnectedRanks {
 public:
  ConnectedRanks(const std::string& path, const RankOptions& options)
      : size_(options.layout.ranks()),
        limits_(options.limits),
        ranks_(size_),
        control_(size_),
        pipeline_(size_),
        tensor_(size_) {
    const auto checkpoint = Open(path);
    std::vector<std::string> names;
    for (int stage = 0; stage < options.layout.stages; ++stage) {
      names.push_back(comm::MakeShmName());
    }
    auto world = comm::MakeThreadCommunicators(size_);
    EXPECT_TRUE(world.ok());
    const comm::TcpOptions tcp = {
        .places = std::vector<comm::RankPlace>(size_, {.host = "here", .identity = "here"})};
    OnEveryRank([&](int rank) {
      const int stage = rank / options.layout.tensor_ranks;
      ranks_[rank] = Value(Rank::Plan(options, *checkpoint, rank));
      EXPECT_TRUE(ranks_[rank]->Load(*checkpoint, nullptr).ok());
      control_[rank] = Value(comm::MakeTcpCommunicator(*(*world)[rank], tcp));
      pipeline_[rank] = Value(comm::MakeTcpCommunicator(*(*world)[rank], tcp));
      tensor_[rank] = Value(comm::MakeShmCommunicator({.name = names[stage],
                                                       .rank = rank % options.layout.tensor_ranks,
                                                       .size = options.layout.tensor_ranks}));
    });
    const int last_stage = size_ - options.layout.tensor_ranks;
    plans_ = std::make_unique<ProcessPipeline>(
        control_[0].get(), options.layout.stages, last_stage, options.limits,
        ProcessPipeline::Hooks{.on_plan = [](uint64_t) {},
                               .explain = [](const absl::Status& symptom) { return symptom; }});
    controller_ = Value(Controller::Create(
        {.limits = options.limits, .vocabulary = checkpoint->model_spec().vocabulary}, plans_.get(),
        nullptr, SteadyClock()));
    for (int rank = 0; rank < size_; ++rank) {
      threads_.emplace_back([this, rank, hop = options.layout.tensor_ranks] { Run(rank, hop); });
    }
  }

  ~ConnectedRanks() {
    controller_->Stop(absl::CancelledError("the test is over"));
    EXPECT_TRUE(plans_->SendShutdown().ok());
    for (std::thread& thread : threads_) {
      thread.join();
    }
    control_[0]->Abort(absl::CancelledError("the test is over"));
  }

  Controller& controller() { return *controller_; }

 private:
  template <typename T>
  static T Value(absl::StatusOr<T> value) {
    EXPECT_TRUE(value.ok()) << value.status();
    return *std::move(value);
  }

  template <typename Body>
  void OnEveryRank(Body body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&body, rank] { body(rank); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  void Run(int rank, int hop) {
    const auto source = MakeProcessPlanSource(control_[rank].get(), limits_);
    const absl::Status status = ranks_[rank]->Run(
        {.tensor = tensor_[rank].get(),
         .pipeline = pipeline_[rank].get(),
         .previous_rank = rank >= hop ? std::optional<int>(rank - hop) : std::nullopt,
         .next_rank = rank + hop < size_ ? std::optional<int>(rank + hop) : std::nullopt,
         .plans = rank == 0 ? plans_->local_source() : source.get()});
    EXPECT_TRUE(status.ok()) << status;
  }

  const int size_;
  const StepLimits limits_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<comm::Communicator>> control_;
  std::vector<std::unique_ptr<comm::Communicator>> pipeline_;
  std::vector<std::unique_ptr<comm::Communicator>> tensor_;
  std::unique_ptr<ProcessPipeline> plans_;
  std::unique_ptr<Controller> controller_;
  std::vector<std::thread> threads_;
};

class ReplicaAllocationTest : public ::testing::Test {
 protected:
  ReplicaAllocationTest() { testing::ExcuseThisThread(); }
};

TEST_F(ReplicaAllocationTest, TheCountSeesWhatOtherThreadsAllocate) {
  const int64_t before = testing::AllocationsOfAllThreads();
  // Direct calls: a compiler may leave out a new expression whose object nobody needs.
  const auto allocate = [] { ::operator delete(::operator new(16)); };
  allocate();
  EXPECT_EQ(testing::AllocationsOfAllThreads(), before);
  std::thread other([&allocate] {
    const int64_t before_other = testing::AllocationsOfAllThreads();
    allocate();
    EXPECT_EQ(testing::AllocationsOfAllThreads(), before_other + 1);
  });
  other.join();
}

TEST_F(ReplicaAllocationTest, AThousandDecodeStepsOfOneRankAllocateNothing) {
  const auto replica = Start(kLongModel, {.tensor_ranks = 1, .stages = 1, .stage_layers = {}},
                             /*context=*/2048, /*threads=*/2);
  EXPECT_EQ(AllocationsOfDecoding(replica->controller(), 200, 1200), 0);
}

TEST_F(ReplicaAllocationTest, AThousandDecodeStepsOfFourRanksAllocateNothing) {
  const auto replica = Start(kLongModel, {.tensor_ranks = 2, .stages = 2, .stage_layers = {}},
                             /*context=*/2048, /*threads=*/1);
  EXPECT_EQ(AllocationsOfDecoding(replica->controller(), 200, 1200), 0);
}

TEST_F(ReplicaAllocationTest, QuantizedWeightsAllocateNothingEither) {
  const auto replica = Start(kQuantizedModel, {.tensor_ranks = 2, .stages = 1, .stage_layers = {}},
                             /*context=*/128, /*threads=*/2);
  EXPECT_EQ(AllocationsOfDecoding(replica->controller(), 20, 100), 0);
}

TEST_F(ReplicaAllocationTest, PromptsInChunksAllocateNothing) {
  const auto replica = Start(kLongModel, {.tensor_ranks = 2, .stages = 2, .stage_layers = {}},
                             /*context=*/4096, /*threads=*/1);
  EXPECT_EQ(AllocationsOfPrefill(replica->controller(), 3500), 0);
}

TEST_F(ReplicaAllocationTest, SocketsAndSharedMemoryBetweenRanksAllocateNothingEither) {
  const topology::Layout layout = {.tensor_ranks = 2, .stages = 2, .stage_layers = {}};
  ConnectedRanks replica(kLongModel, Options(layout, /*context=*/4096, /*threads=*/1));
  EXPECT_EQ(AllocationsOfDecoding(replica.controller(), 200, 1200), 0);
  EXPECT_EQ(AllocationsOfPrefill(replica.controller(), 2000), 0);
}

}  // namespace
}  // namespace trireme::engine

#include "runtime/engine/local_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/engine/response_stream.h"
#include "runtime/weights/checkpoint.h"
#include "tests/support/damaged_model.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme::engine {
namespace {

using ::testing::HasSubstr;

constexpr char kFloatModel[] = "tests/data/families/llama/model.gguf";
constexpr char kQuantizedModel[] = "tests/data/gguf-files/good/base-bpe.gguf";

struct Outcome {
  std::vector<std::vector<int32_t>> ids;  // of each request
  std::vector<float> logits;              // of the first prompt, all positions

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::vector<std::vector<int32_t>> Prompts(int64_t vocabulary) {
  std::vector<std::vector<int32_t>> prompts;
  for (const int length : {41, 1, 17, 100}) {
    std::vector<int32_t> prompt;
    for (int i = 0; i < length; ++i) {
      prompt.push_back(static_cast<int32_t>((i * 37 + length * 11) % vocabulary));
    }
    prompts.push_back(prompt);
  }
  return prompts;
}

// Two greedy requests and two sampled ones, submitted together.
std::vector<std::vector<int32_t>> GenerateAll(Replica& replica, const std::vector<size_t>& order) {
  const auto prompts = Prompts(replica.info().model.vocabulary);
  std::vector<std::shared_ptr<ResponseStream>> streams(prompts.size());
  for (const size_t i : order) {
    schedule::Request request;
    request.id = absl::StrCat("request-", i);
    request.prompt = prompts[i];
    request.stopping.max_tokens = 12;
    request.stopping.ignore_eos = true;
    request.want_text = false;
    if (i % 2 == 1) {
      request.sampling = {
          .temperature = 1.0f, .top_k = 50, .top_p = 0.95f, .min_p = 0.0f, .seed = 7 + i};
    }
    streams[i] = std::make_shared<ResponseStream>(12);
    EXPECT_TRUE(replica.controller().Submit(std::move(request), streams[i]).ok());
  }
  std::vector<std::vector<int32_t>> ids(prompts.size());
  for (const size_t i : order) {
    for (bool ended = false; !ended;) {
      streams[i]->Wait();
      Delta delta;
      while (streams[i]->Take(&delta)) {
        ids[i].insert(ids[i].end(), delta.token_ids.begin(), delta.token_ids.end());
        if (delta.ending.has_value()) {
          EXPECT_TRUE(delta.ending->status.ok()) << delta.ending->status;
          ended = true;
        }
      }
    }
  }
  return ids;
}

Outcome RunAll(const std::string& path, RankOptions options,
               const std::vector<size_t>& order = {0, 1, 2, 3}) {
  options.limits.context = 128;
  options.limits.sequences = 8;
  options.limits.logit_rows = 8;
  const auto checkpoint = weights::Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto replica = StartLocalReplica(**checkpoint, {.ranks = options});
  EXPECT_TRUE(replica.ok()) << replica.status();
  Outcome outcome;
  outcome.ids = GenerateAll(**replica, order);
  EXPECT_TRUE((*replica)
                  ->controller()
                  .Score(Prompts((*replica)->info().model.vocabulary)[0],
                         [&outcome](int64_t /*first_row*/, absl::Span<const float> logits) {
                           outcome.logits.insert(outcome.logits.end(), logits.begin(),
                                                 logits.end());
                         })
                  .ok());
  return outcome;
}

RankOptions Cut(int tensor_ranks, int stages) {
  RankOptions options;
  options.layout = {.tensor_ranks = tensor_ranks, .stages = stages, .stage_layers = {}};
  options.limits.tokens = 64;
  return options;
}

TEST(LocalReplicaTest, IdsAndLogitsAreTheSameBitsInEveryLayout) {
  const Outcome whole = RunAll(kFloatModel, Cut(1, 1));
  for (const int tensor_ranks : {1, 2, 4, 8}) {
    for (const int stages : {1, 2}) {
      EXPECT_TRUE(RunAll(kFloatModel, Cut(tensor_ranks, stages)) == whole)
          << tensor_ranks << " x " << stages;
    }
  }
}

TEST(LocalReplicaTest, QuantizedModelsToo) {
  const Outcome whole = RunAll(kQuantizedModel, Cut(1, 1));
  for (const int tensor_ranks : {2, 4}) {
    EXPECT_TRUE(RunAll(kQuantizedModel, Cut(tensor_ranks, 2)) == whole) << tensor_ranks;
  }
}

TEST(LocalReplicaTest, StepSizesThreadsAndOrdersChangeNoBit) {
  const Outcome whole = RunAll(kFloatModel, Cut(2, 1));
  for (const int32_t tokens : {7, 64, 512}) {
    RankOptions options = Cut(2, 2);
    options.limits.tokens = tokens;
    options.threads = tokens == 7 ? 2 : 1;
    EXPECT_TRUE(RunAll(kFloatModel, options, {3, 1, 0, 2}) == whole) << tokens;
  }
}

TEST(LocalReplicaTest, ACrowdedCachePreemptsAndChangesNoBit) {
  const Outcome whole = RunAll(kFloatModel, Cut(1, 1));
  RankOptions options = Cut(1, 1);
  options.limits.blocks = 10;  // 160 positions for four sequences that come to 207
  EXPECT_TRUE(RunAll(kFloatModel, options) == whole);
}

TEST(LocalReplicaTest, MoreTensorRanksThanHeadsAreRefusedWithBothNumbers) {
  const auto checkpoint = weights::Checkpoint::Open(kQuantizedModel);
  ASSERT_TRUE(checkpoint.ok());
  const auto replica = StartLocalReplica(**checkpoint, {.ranks = Cut(8, 1)});
  EXPECT_THAT(std::string(replica.status().message()),
              HasSubstr("8 tensor ranks for a model of 4 query heads"));
}

TEST(LocalReplicaTest, AModelThatDoesNotFitIsRefusedBeforeItIsLoaded) {
  const auto checkpoint = weights::Checkpoint::Open(kFloatModel);
  ASSERT_TRUE(checkpoint.ok());
  RankOptions options = Cut(1, 1);
  options.limits.blocks = 1 << 30;
  const auto replica = StartLocalReplica(**checkpoint, {.ranks = options});
  EXPECT_TRUE(absl::IsResourceExhausted(replica.status())) << replica.status();
}

TEST(LocalReplicaTest, BytesOfARankAreWhatThePlanSays) {
  const auto checkpoint = weights::Checkpoint::Open(kFloatModel);
  ASSERT_TRUE(checkpoint.ok());
  RankOptions options = Cut(2, 1);
  options.limits.context = 64;
  options.limits.blocks = 4;
  const auto replica = StartLocalReplica(**checkpoint, {.ranks = options});
  ASSERT_TRUE(replica.ok());
  const spec::ModelSpec& model = (*replica)->info().model;
  // Each rank holds one of the two key/value heads: blocks x 16 slots x (key and value) x head
  // width x 2 bytes a layer.
  const int64_t kv_bytes = static_cast<int64_t>(model.layers.size()) * 4 * 16 * 2 *
                           model.layers[0].attention.head_dim * 2;
  EXPECT_EQ((*replica)->info().rank_bytes[0].kv_cache, kv_bytes);
}

struct StreamEnd {
  absl::Status status;
  std::vector<int32_t> ids;
};

// Eight greedy tokens of each prompt, submitted together.
std::vector<StreamEnd> EndingsOf(Replica& replica,
                                 const std::vector<std::vector<int32_t>>& prompts) {
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (const std::vector<int32_t>& prompt : prompts) {
    schedule::Request request;
    request.id = absl::StrCat("request-", streams.size());
    request.prompt = prompt;
    request.stopping.max_tokens = 8;
    request.stopping.ignore_eos = true;
    request.want_text = false;
    streams.push_back(std::make_shared<ResponseStream>(8));
    EXPECT_TRUE(replica.controller().Submit(std::move(request), streams.back()).ok());
  }
  std::vector<StreamEnd> endings(prompts.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    for (bool ended = false; !ended;) {
      streams[i]->Wait();
      Delta delta;
      while (streams[i]->Take(&delta)) {
        endings[i].ids.insert(endings[i].ids.end(), delta.token_ids.begin(), delta.token_ids.end());
        ended = ended || delta.ending.has_value();
        if (delta.ending.has_value()) {
          endings[i].status = delta.ending->status;
        }
      }
    }
  }
  return endings;
}

std::unique_ptr<Replica> ReplicaOf(const std::string& path, const RankOptions& options) {
  const auto checkpoint = weights::Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto replica = StartLocalReplica(**checkpoint, {.ranks = options});
  EXPECT_TRUE(replica.ok()) << replica.status();
  return *std::move(replica);
}

// The row of a token in the embedding is damaged: prompts that hold the token end, at its place or
// in a later chunk of the prompt, and the others have their own tokens.
TEST(LocalReplicaTest, D12_AWeightThatIsNoNumberEndsTheRequestsThatMeetItOnly) {
  constexpr int32_t kToken = 7;
  const std::string path =
      DamagedModel(kFloatModel, {"token_embd.weight", kToken, 100, std::nanf("")});
  std::vector<std::vector<int32_t>> prompts = Prompts(160);
  for (std::vector<int32_t>& prompt : prompts) {
    std::replace(prompt.begin(), prompt.end(), kToken, kToken + 1);
  }
  const std::vector<StreamEnd> wanted = EndingsOf(*ReplicaOf(kFloatModel, Cut(1, 1)), prompts);
  for (const StreamEnd& ending : wanted) {
    EXPECT_EQ(std::count(ending.ids.begin(), ending.ids.end(), kToken), 0);  // else it would end
  }
  prompts[2][0] = kToken;
  prompts[3][5] = kToken;
  for (const int tensor_ranks : {1, 2}) {
    for (const int stages : {1, 2}) {
      RankOptions options = Cut(tensor_ranks, stages);
      options.limits.tokens = 48;  // the longest prompt takes three steps
      options.limits.blocks = 14;  // which those who end leave to others
      const auto replica = ReplicaOf(path, options);
      const std::vector<StreamEnd> endings = EndingsOf(*replica, prompts);
      for (const size_t good : {0, 1}) {
        EXPECT_TRUE(endings[good].status.ok()) << endings[good].status;
        EXPECT_EQ(endings[good].ids, wanted[good].ids);
      }
      for (const size_t bad : {2, 3}) {
        EXPECT_EQ(endings[bad].status.code(), absl::StatusCode::kInternal);
        EXPECT_THAT(std::string(endings[bad].status.message()), HasSubstr("the embedding"));
        EXPECT_TRUE(endings[bad].ids.empty());
      }
      for (int again = 0; again < 3; ++again) {
        const std::vector<StreamEnd> later = EndingsOf(*replica, {prompts[3], prompts[0]});
        EXPECT_FALSE(later[0].status.ok());
        EXPECT_EQ(later[1].ids, wanted[0].ids);
      }
    }
  }
}

TEST(LocalReplicaTest, D12_TheLayerThatLosesItsNumbersIsNamed) {
  struct Case {
    const char* tensor;
    const char* place;
  };
  for (const Case& one :
       {Case{"blk.0.attn_norm.weight", "layer 0 on"},
        Case{"blk.1.attn_output.weight", "layer 1 on"}, Case{"blk.1.ffn_down.weight", "layer 1 on"},
        Case{"output_norm.weight", "the output matrix on"},
        Case{"output.weight", "the output matrix on"}}) {
    const std::string path = DamagedModel(kFloatModel, {one.tensor, 0, 3, std::nanf("")});
    for (const int stages : {1, 2}) {
      const auto replica = ReplicaOf(path, Cut(2, stages));
      for (const StreamEnd& ending : EndingsOf(*replica, Prompts(160))) {
        EXPECT_EQ(ending.status.code(), absl::StatusCode::kInternal) << one.tensor;
        EXPECT_THAT(std::string(ending.status.message()), HasSubstr(one.place)) << one.tensor;
      }
      const absl::Status score =
          replica->controller().Score({1, 2, 3}, [](int64_t, absl::Span<const float>) {});
      EXPECT_THAT(std::string(score.message()), HasSubstr(one.place)) << one.tensor;
    }
  }
}

TEST(LocalReplicaTest, D12_DamagedWeightsAreRefusedWhereThatIsAsked) {
  const auto checkpoint = weights::Checkpoint::Open(
      DamagedModel(kFloatModel, {"blk.1.ffn_down.weight", 2, 3, std::nanf("")}));
  ASSERT_TRUE(checkpoint.ok());
  RankOptions options = Cut(2, 1);
  options.bad_weights = weights::BadWeights::kRefuse;
  const auto replica = StartLocalReplica(**checkpoint, {.ranks = options});
  EXPECT_TRUE(absl::IsDataLoss(replica.status())) << replica.status();
  EXPECT_THAT(std::string(replica.status().message()),
              HasSubstr("blk.1.ffn_down.weight (nan at row 2, column 3)"));
}

// Three layers whose tokens use 3 of 8 experts.
TEST(LocalReplicaTest, CountsTheTokensOfEachExpertOnEveryLayoutAlike) {
  constexpr char kMixture[] = "tests/data/families/gpt_oss";
  std::vector<std::vector<uint64_t>> alone;
  for (const auto& [tensor_ranks, stages] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 3}}) {
    RankOptions options = Cut(tensor_ranks, stages);
    options.limits.context = 128;
    const auto replica = ReplicaOf(kMixture, options);
    EXPECT_EQ(replica->ExpertLoads().size(), 3u);
    GenerateAll(*replica, {0, 1, 2, 3});
    std::vector<std::vector<uint64_t>> tokens;
    for (const model::ExpertLayerLoad& load : replica->ExpertLoads()) {
      EXPECT_EQ(load.layer, static_cast<int64_t>(tokens.size()));
      EXPECT_EQ(load.tokens.size(), 8u);
      // Prompts of 41, 1, 17 and 100 tokens, and all but the last of 12 generated ones each.
      EXPECT_EQ(std::accumulate(load.tokens.begin(), load.tokens.end(), uint64_t{0}),
                3u * (41 + 1 + 17 + 100 + 4 * 11));
      tokens.push_back(load.tokens);
    }
    if (alone.empty()) {
      alone = tokens;
    }
    EXPECT_EQ(tokens, alone) << tensor_ranks << " x " << stages;
  }
  EXPECT_TRUE(ReplicaOf(kFloatModel, Cut(1, 1))->ExpertLoads().empty());
}

TEST(LocalReplicaTest, ShowsItsRanksAndTheirSteps) {
  const auto checkpoint = weights::Checkpoint::Open(kFloatModel);
  ASSERT_TRUE(checkpoint.ok());
  const auto replica = StartLocalReplica(**checkpoint, {.ranks = Cut(2, 2)});
  ASSERT_TRUE(replica.ok());
  const std::vector<RankStatus> before = (*replica)->RankStatuses();
  ASSERT_EQ(before.size(), 4U);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(before[rank].rank, rank);
    EXPECT_EQ(before[rank].stage, rank / 2);
    EXPECT_EQ(before[rank].tensor_rank, rank % 2);
    EXPECT_EQ(before[rank].process_id, ::getpid());
    EXPECT_NE(before[rank].host, "");
    EXPECT_EQ(before[rank].step, 0U);
    EXPECT_EQ(RankPhaseName(before[rank].phase), "idle");
  }
  GenerateAll(**replica, {0, 1, 2, 3});
  EXPECT_GE((*replica)->RankStatuses()[0].step, 12U);
}

TEST(ReplicaTextTest, FaultyVocabulariesAreRefusedByTheNameOfTheFault) {
  int judged = 0;
  for (const BadGguf& bad : BadGgufs()) {
    if (bad.stage != "tokenizer") {
      continue;
    }
    const std::string path = std::string(kGgufFixtures) + "/bad/" + bad.file;
    const auto checkpoint = weights::Checkpoint::Open(path);
    const absl::Status status =
        checkpoint.ok() ? ReadReplicaText(**checkpoint).status() : checkpoint.status();
    EXPECT_EQ(JudgeError(status, path, bad.words), "") << bad.wrong;
    ++judged;
  }
  EXPECT_GT(judged, 15);
}

// A folder with a model's files and its own generation_config.json.
std::string FolderWith(const std::string& generation_config) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "replica_text_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(std::filesystem::path("tests/data/families/gpt_oss") / name,
                               folder / name);
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(std::filesystem::path("tests/data/families/tiny_tokenizer") / name,
                               folder / name);
  }
  std::ofstream(folder / "generation_config.json") << generation_config;
  return folder.string();
}

TEST(ReplicaTextTest, TheFilesBesideTheWeightsSayHowToSampleAndWhereToEnd) {
  const auto checkpoint = weights::Checkpoint::Open(FolderWith(
      R"({"temperature": 0.5, "top_k": 20, "top_p": 0.75, "eos_token_id": [317, 319]})"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto text = ReadReplicaText(**checkpoint);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->default_sampling.temperature, 0.5F);
  EXPECT_EQ(text->default_sampling.top_k, 20);
  EXPECT_EQ(text->default_sampling.top_p, 0.75F);
  EXPECT_EQ(text->default_sampling.min_p, 0.0F);
  ASSERT_NE(text->tokenizer, nullptr);
  EXPECT_TRUE(text->tokenizer->IsEndOfGeneration(317));
  EXPECT_TRUE(text->tokenizer->IsEndOfGeneration(319));
  EXPECT_FALSE(text->tokenizer->IsEndOfGeneration(318));
}

TEST(ReplicaTextTest, AFolderWithAnotherFileThatSpeaksInIdsDoesToo) {
  // No tokenizer.json: the folder's model.gguf is asked, and has no vocabulary either.
  const auto checkpoint = weights::Checkpoint::Open("tests/data/families/arcee");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto text = ReadReplicaText(**checkpoint);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->tokenizer, nullptr);
  EXPECT_EQ(text->chat_template, nullptr);
}

TEST(ReplicaTextTest, ADefaultThatCannotBeIsNamed) {
  const auto checkpoint = weights::Checkpoint::Open(FolderWith(R"({"top_p": 1.5})"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const absl::Status status = ReadReplicaText(**checkpoint).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("generation_config.json: top_p is 1.5"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace trireme::engine

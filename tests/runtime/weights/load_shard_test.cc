#include "runtime/weights/load_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/formats/decode.h"
#include "kernels/kernel_table.h"
#include "runtime/device/buffer.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/shard_plan.h"
#include "runtime/weights/slice_rows.h"
#include "tests/support/damaged_model.h"
#include "topology/partition_model.h"

namespace trireme::weights {
namespace {

using ::testing::HasSubstr;

constexpr char kQuantized[] = "tests/data/gguf-files/good/base-bpe.gguf";
constexpr char kFloat[] = "tests/data/families/llama/model.gguf";

ShardPlan PlanOf(const Checkpoint& checkpoint, int tensor_ranks, int rank,
                 const kernels::KernelTable& table) {
  const auto partition =
      topology::PartitionModel(checkpoint.model_spec().Extents(),
                               {.tensor_ranks = tensor_ranks, .stages = 1, .stage_layers = {}});
  EXPECT_TRUE(partition.ok()) << partition.status();
  auto plan = PlanShard(checkpoint, partition->parts[rank], table);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(LoadShardTest, LoadsEveryTensorAndReportsProgressUpToTheEnd) {
  const auto checkpoint = Checkpoint::Open(kQuantized);
  ASSERT_TRUE(checkpoint.ok());
  const kernels::KernelTable& table = *kernels::FindKernelTable("reference");
  const ShardPlan plan = PlanOf(**checkpoint, 1, 0, table);
  int64_t last_done = 0;
  int64_t last_total = 0;
  const auto shard = LoadShard(**checkpoint, plan, table,
                               {.threads = 2, .progress = [&](int64_t done, int64_t total) {
                                  EXPECT_GT(done, last_done);
                                  last_done = done;
                                  last_total = total;
                                }});
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(last_done, last_total);
  EXPECT_EQ(shard->layers.size(), 2u);
  EXPECT_EQ(shard->ends.matrix(spec::Role::kEmbedding).slices[0].data,
            shard->ends.matrix(spec::Role::kOutput).slices[0].data);
  // 32 hidden columns are one unit; four heads, four leaves.
  EXPECT_EQ(shard->layers[1].matrix(spec::Role::kDown).slices.size(), 1u);
  EXPECT_EQ(shard->layers[1].matrix(spec::Role::kAttentionOutput).slices.size(), 4u);
}

// What lets a slice be packed in runs, for every table and format.
TEST(LoadShardTest, RunsOfPanelsPackedOneAfterAnotherAreThePackedSlice) {
  constexpr int64_t kRowValues = 768;
  constexpr int64_t kRows = 75;
  std::mt19937 generator(3);
  const kernels::KernelTableList list = kernels::RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    const kernels::KernelTable& table = *list.tables[i];
    for (const kernels::WeightFormatInfo& info : kernels::kWeightFormats) {
      kernels::PackArgs args;
      args.shape = {.format = info.format, .rows = kRows, .columns = 480, .first_column = 224};
      args.source_row_bytes = kernels::StoredRowBytes(info.format, kRowValues);
      std::vector<std::byte> source(static_cast<size_t>(kRows * args.source_row_bytes));
      for (std::byte& byte : source) {
        byte = static_cast<std::byte>(generator());
      }
      args.source = source.data();
      const auto whole = device::DeviceBuffer::Create(table.packed_bytes(args.shape), "whole");
      const auto runs = device::DeviceBuffer::Create(table.packed_bytes(args.shape), "runs");
      ASSERT_TRUE(whole.ok() && runs.ok());
      args.packed = whole->data();
      table.pack(args);
      for (int64_t first = 0; first < kRows; first += 2 * kPanelRowsMax) {
        kernels::PackArgs run = args;
        run.shape.rows = first;
        run.packed = runs->data() + (first == 0 ? 0 : table.packed_bytes(run.shape));
        run.shape.rows = std::min(2 * kPanelRowsMax, kRows - first);
        run.source = args.source + first * args.source_row_bytes;
        table.pack(run);
      }
      EXPECT_EQ(std::memcmp(whole->data(), runs->data(), static_cast<size_t>(whole->size_bytes())),
                0)
          << table.name << " " << info.name;
    }
  }
}

class BadWeightsTest : public ::testing::Test {
 protected:
  absl::Status LoadStatus(const std::string& path, int tensor_ranks, int rank,
                          BadWeights bad_weights) {
    const kernels::KernelTable& table = *kernels::FindKernelTable("");
    const auto checkpoint = Checkpoint::Open(path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    const ShardPlan plan = PlanOf(**checkpoint, tensor_ranks, rank, table);
    return LoadShard(**checkpoint, plan, table, {.threads = 2, .bad_weights = bad_weights})
        .status();
  }
};

TEST_F(BadWeightsTest, D12_TheyAreNamedWithTheirPlaceAndRefusedWhereThatIsAsked) {
  struct Case {
    const char* tensor;
    int64_t row;
    int64_t column;
    float value;
    const char* said;
  };
  for (const Case& one : {Case{"blk.1.ffn_up.weight", 37, 5, NAN, "nan at row 37, column 5"},
                          Case{"token_embd.weight", 2, 127, -INFINITY, "-inf at row 2, column 127"},
                          Case{"blk.0.attn_norm.weight", 0, 9, INFINITY, "inf at row 0, column 9"},
                          Case{"blk.0.ffn_down.weight", 11, 3, NAN, "nan at row 11, column 3"}}) {
    const std::string path = DamagedModel(kFloat, {one.tensor, one.row, one.column, one.value});
    const absl::Status refused = LoadStatus(path, 1, 0, BadWeights::kRefuse);
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(path));
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr(absl::StrCat(one.tensor, " (", one.said, ")")));
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(LoadStatus(path, 1, 0, BadWeights::kWarn).ok());
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr(absl::StrCat(one.tensor, " (", one.said, ")")));
  }
}

TEST_F(BadWeightsTest, D12_ARankNamesThoseOfItsOwnPart) {
  // Rows of the gate are cut: the first half is rank 0's.
  const std::string path = DamagedModel(kFloat, {"blk.0.ffn_gate.weight", 3, 4, NAN});
  EXPECT_THAT(std::string(LoadStatus(path, 2, 0, BadWeights::kRefuse).message()),
              HasSubstr("nan at row 3, column 4"));
  EXPECT_TRUE(LoadStatus(path, 2, 1, BadWeights::kRefuse).ok());
}

TEST_F(BadWeightsTest, D12_GoodFilesLoadWhereBadOnesAreRefused) {
  for (const char* path : {kFloat, kQuantized}) {
    EXPECT_TRUE(LoadStatus(path, 2, 1, BadWeights::kRefuse).ok()) << path;
  }
}

}  // namespace
}  // namespace trireme::weights

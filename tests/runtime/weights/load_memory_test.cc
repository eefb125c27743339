// What a rank holds while it loads, beside its packed weights and the page cache: heap bytes by
// counted operators, and the anonymous memory that the kernel counts. Never one tensor more.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/load_shard.h"
#include "runtime/weights/shard_plan.h"
#include "runtime/weights/synthetic_model.h"
#include "tests/support/allocation_count.h"
#include "topology/partition_model.h"

namespace trireme::weights {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int kThreads = 4;

int64_t AnonymousBytes() {
  std::ifstream file("/proc/self/status");
  std::string key;
  int64_t kibibytes = 0;
  while (file >> key) {
    if (key == "RssAnon:" && file >> kibibytes) {
      return kibibytes * 1024;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

int64_t LargestTensorBytes(const ShardPlan& plan) {
  int64_t largest = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    int64_t bytes = 0;
    for (const PlannedSlice& slice : tensor.slices) {
      bytes += slice.arena_bytes;
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

// Loads on each of `tensor_ranks` ranks in turn.
void ExpectLittleBesideTheWeights(const std::string& path, int tensor_ranks) {
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const kernels::KernelTable& table = *kernels::FindKernelTable("");
  const auto partition =
      topology::PartitionModel((*checkpoint)->model_spec().Extents(),
                               {.tensor_ranks = tensor_ranks, .stages = 1, .stage_layers = {}});
  ASSERT_TRUE(partition.ok());
  for (const topology::RankPart& part : partition->parts) {
    const auto plan = PlanShard(**checkpoint, part, table);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const int64_t largest = LargestTensorBytes(*plan);
    ASSERT_GE(largest, 16 * kMebibyte);  // else the test shows nothing
    testing::RestartPeakOfAllThreads();
    const int64_t heap_before = testing::LiveBytesOfAllThreads();
    const int64_t anonymous_before = AnonymousBytes();
    int64_t anonymous_most = 0;
    const auto shard = LoadShard(**checkpoint, *plan, table,
                                 {.threads = kThreads, .progress = [&](int64_t, int64_t) {
                                    anonymous_most = std::max(anonymous_most, AnonymousBytes());
                                  }});
    ASSERT_TRUE(shard.ok()) << shard.status();
    const int64_t heap = testing::PeakBytesOfAllThreads() - heap_before;
    const int64_t anonymous = anonymous_most - anonymous_before - plan->arena_bytes;
    std::printf(
        "%s, rank %d of %d: %.1f MiB packed, the largest tensor %.1f MiB; beside it at "
        "most %.1f MiB of heap, %.1f MiB of anonymous memory\n",
        std::filesystem::path(path).filename().c_str(), part.rank, tensor_ranks,
        static_cast<double>(plan->arena_bytes) / kMebibyte,
        static_cast<double>(largest) / kMebibyte, static_cast<double>(heap) / kMebibyte,
        static_cast<double>(anonymous) / kMebibyte);
    // A run of about 1 MiB, or 16 rows, and its decoded values, on each thread; and lists.
    EXPECT_LT(heap, kThreads * 2 * kMebibyte + kMebibyte);
    EXPECT_LT(heap, largest);
    // With pages of 2 MiB at the arena's end, stacks of threads and what malloc keeps; a thread
    // sanitizer keeps four bytes for each of the arena's.
#ifndef __SANITIZE_THREAD__
    EXPECT_LT(anonymous, largest);
#endif
  }
}

// Blocks of a GGUF file are packed from where they lie.
TEST(LoadMemoryTest, AGgufFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/load_memory_test.gguf");
  const SyntheticModel model = {.shape = {.name = "test",
                                          .architecture = "llama",
                                          .layers = 2,
                                          .model_dim = 1024,
                                          .query_heads = 8,
                                          .key_value_heads = 2,
                                          .head_dim = 128,
                                          .hidden_dim = 4096,
                                          .vocabulary = 64000,
                                          .context = 512,
                                          .rope_base = 10000,
                                          .is_tied = false},
                                .format = kernels::WeightFormat::kQ4_0};
  ASSERT_TRUE(WriteSyntheticModel(model, path).ok());
  ExpectLittleBesideTheWeights(path, 1);
  std::filesystem::remove(path);
}

// A directory with matrices of 8-bit floats and scales for blocks of 64 x 64, which no packed
// format holds: they are decoded.
std::string WriteFloat8Directory() {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/load_memory_test");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json")
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024,
             "intermediate_size": 4096, "num_hidden_layers": 1, "num_attention_heads": 8,
             "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 512,
             "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
             "quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 64]}})";
  std::string header;
  int64_t bytes = 0;
  const auto add = [&](const std::string& name, const char* type, int64_t rows, int64_t columns,
                       int64_t element_bytes) {
    const int64_t end = bytes + rows * columns * element_bytes;
    absl::StrAppend(&header, header.empty() ? "{" : ",", "\"", name, "\":{\"dtype\":\"", type,
                    "\",\"shape\":[", rows == 1 ? "" : absl::StrCat(rows, ","), columns,
                    "],\"data_offsets\":[", bytes, ",", end, "]}");
    bytes = end;
  };
  const auto add_matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    add(name + ".weight", "F8_E4M3", rows, columns, 1);
    add(name + ".weight_scale_inv", "F32", rows / 64, columns / 64, 4);
  };
  add("model.embed_tokens.weight", "F32", 512, 1024, 4);
  add("lm_head.weight", "F32", 512, 1024, 4);
  add("model.norm.weight", "F32", 1, 1024, 4);
  const std::string layer = "model.layers.0.";
  add(layer + "input_layernorm.weight", "F32", 1, 1024, 4);
  add(layer + "post_attention_layernorm.weight", "F32", 1, 1024, 4);
  add_matrix(layer + "self_attn.q_proj", 1024, 1024);
  add_matrix(layer + "self_attn.k_proj", 256, 1024);
  add_matrix(layer + "self_attn.v_proj", 256, 1024);
  add_matrix(layer + "self_attn.o_proj", 1024, 1024);
  add_matrix(layer + "mlp.gate_proj", 4096, 1024);
  add_matrix(layer + "mlp.up_proj", 4096, 1024);
  add_matrix(layer + "mlp.down_proj", 1024, 4096);
  header += "}";
  std::ofstream file(folder + "/model.safetensors", std::ios::binary);
  const auto header_bytes = static_cast<uint64_t>(header.size());
  file.write(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
  file << header << std::string(static_cast<size_t>(bytes), '\x30');  // 0.5; a small scale
  return folder;
}

// Each of the three wide matrices takes 16 MiB as float32, which is what it is packed as.
TEST(LoadMemoryTest, MatricesThatAreDecoded) {
  const std::string folder = WriteFloat8Directory();
  ExpectLittleBesideTheWeights(folder, 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trireme::weights

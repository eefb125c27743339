#include "runtime/weights/synthetic_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/formats/decode.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/ggml_type.h"
#include "runtime/weights/gguf_writer.h"

namespace trireme::weights {
namespace {

constexpr SyntheticShape kShapes[] = {
    {.name = "smollm2-135m",
     .architecture = "llama",
     .layers = 30,
     .model_dim = 576,
     .query_heads = 9,
     .key_value_heads = 3,
     .head_dim = 64,
     .hidden_dim = 1536,
     .vocabulary = 49152,
     .context = 8192,
     .rope_base = 100000.0f,
     .is_tied = true},
    {.name = "llama-1b",
     .architecture = "llama",
     .layers = 16,
     .model_dim = 2048,
     .query_heads = 32,
     .key_value_heads = 8,
     .head_dim = 64,
     .hidden_dim = 8192,
     .vocabulary = 128256,
     .context = 131072,
     .rope_base = 500000.0f,
     .is_tied = true},
    {.name = "llama-3b",
     .architecture = "llama",
     .layers = 28,
     .model_dim = 3072,
     .query_heads = 24,
     .key_value_heads = 8,
     .head_dim = 128,
     .hidden_dim = 8192,
     .vocabulary = 128256,
     .context = 131072,
     .rope_base = 500000.0f,
     .is_tied = true},
    {.name = "llama-8b",
     .architecture = "llama",
     .layers = 32,
     .model_dim = 4096,
     .query_heads = 32,
     .key_value_heads = 8,
     .head_dim = 128,
     .hidden_dim = 14336,
     .vocabulary = 128256,
     .context = 131072,
     .rope_base = 500000.0f,
     .is_tied = false},
    {.name = "llama-70b",
     .architecture = "llama",
     .layers = 80,
     .model_dim = 8192,
     .query_heads = 64,
     .key_value_heads = 8,
     .head_dim = 128,
     .hidden_dim = 28672,
     .vocabulary = 128256,
     .context = 131072,
     .rope_base = 500000.0f,
     .is_tied = false},
    {.name = "qwen3-30b-a3b",
     .architecture = "qwen3moe",
     .layers = 48,
     .model_dim = 2048,
     .query_heads = 32,
     .key_value_heads = 4,
     .head_dim = 128,
     .hidden_dim = 768,
     .vocabulary = 151936,
     .context = 40960,
     .rope_base = 1000000.0f,
     .is_tied = false,
     .has_head_norms = true,
     .experts = 128,
     .experts_used = 8},
};

// Blocks that a format's data is drawn from. Their values are what trained weights are like: of
// this root mean square up to a factor of two, and none far out.
constexpr int kPoolBlocks = 4096;
constexpr float kWeightSize = 0.02f;
constexpr float kOutlier = 8 * kWeightSize;
constexpr int64_t kWriteBytes = int64_t{1} << 20;

// SplitMix64 (Steele, Lea, Flood 2014).
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

bool LooksTrained(absl::Span<const float> values) {
  double squares = 0;
  for (const float value : values) {
    if (!(std::fabs(value) <= kOutlier)) {  // false for NaN too
      return false;
    }
    squares += static_cast<double>(value) * value;
  }
  const double size = std::sqrt(squares / static_cast<double>(values.size()));
  return size >= kWeightSize / 2 && size <= kWeightSize * 2;
}

// Random bits are kept when they decode to something like weights. So nothing here knows where a
// format has its scales.
std::vector<std::byte> MakePool(kernels::WeightFormat format, Draw* draw) {
  const kernels::WeightFormatInfo& info = kernels::InfoOf(format);
  const auto block_bytes = static_cast<size_t>(info.storage_bytes);
  std::vector<std::byte> pool;
  std::vector<std::byte> block(block_bytes + sizeof(uint64_t));
  std::vector<float> values(static_cast<size_t>(info.storage_values));
  while (pool.size() < kPoolBlocks * block_bytes) {
    for (size_t i = 0; i < block_bytes; i += sizeof(uint64_t)) {
      const uint64_t bits = (*draw)();
      std::memcpy(block.data() + i, &bits, sizeof(bits));
    }
    kernels::DecodeRow(format, block.data(), 0, info.storage_values, values.data());
    if (LooksTrained(values)) {
      pool.insert(pool.end(), block.begin(), block.begin() + static_cast<int64_t>(block_bytes));
    }
  }
  return pool;
}

struct PlannedTensor {
  std::string name;
  std::vector<int64_t> dimensions;  // columns first
  bool is_vector = false;           // F32, near one
  bool is_router = false;           // F32, like weights
};

std::vector<PlannedTensor> TensorsOf(const SyntheticShape& shape) {
  const int64_t query_dim = shape.query_heads * shape.head_dim;
  const int64_t key_value_dim = shape.key_value_heads * shape.head_dim;
  std::vector<PlannedTensor> tensors;
  const auto matrix = [&](std::string name, std::vector<int64_t> dimensions) {
    tensors.push_back({.name = std::move(name), .dimensions = std::move(dimensions)});
  };
  const auto norm = [&](std::string name, int64_t size) {
    tensors.push_back({.name = std::move(name), .dimensions = {size}, .is_vector = true});
  };
  matrix("token_embd.weight", {shape.model_dim, shape.vocabulary});
  norm("output_norm.weight", shape.model_dim);
  if (!shape.is_tied) {
    matrix("output.weight", {shape.model_dim, shape.vocabulary});
  }
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto name = [layer](const char* part) {
      return absl::StrCat("blk.", layer, ".", part, ".weight");
    };
    norm(name("attn_norm"), shape.model_dim);
    matrix(name("attn_q"), {shape.model_dim, query_dim});
    matrix(name("attn_k"), {shape.model_dim, key_value_dim});
    matrix(name("attn_v"), {shape.model_dim, key_value_dim});
    matrix(name("attn_output"), {query_dim, shape.model_dim});
    if (shape.has_head_norms) {
      norm(name("attn_q_norm"), shape.head_dim);
      norm(name("attn_k_norm"), shape.head_dim);
    }
    norm(name("ffn_norm"), shape.model_dim);
    if (shape.experts > 0) {
      tensors.push_back({.name = name("ffn_gate_inp"),
                         .dimensions = {shape.model_dim, shape.experts},
                         .is_router = true});
      matrix(name("ffn_gate_exps"), {shape.model_dim, shape.hidden_dim, shape.experts});
      matrix(name("ffn_up_exps"), {shape.model_dim, shape.hidden_dim, shape.experts});
      matrix(name("ffn_down_exps"), {shape.hidden_dim, shape.model_dim, shape.experts});
    } else {
      matrix(name("ffn_gate"), {shape.model_dim, shape.hidden_dim});
      matrix(name("ffn_up"), {shape.model_dim, shape.hidden_dim});
      matrix(name("ffn_down"), {shape.hidden_dim, shape.model_dim});
    }
  }
  return tensors;
}

kernels::WeightFormat FormatOf(const PlannedTensor& tensor, kernels::WeightFormat format) {
  return tensor.is_vector || tensor.is_router ? kernels::WeightFormat::kF32 : format;
}

int64_t BlocksOf(const PlannedTensor& tensor, kernels::WeightFormat format) {
  int64_t values = 1;
  for (const int64_t dimension : tensor.dimensions) {
    values *= dimension;
  }
  return values / kernels::InfoOf(format).storage_values;
}

uint32_t TypeIdOf(kernels::WeightFormat format) {
  for (const GgmlType& type : AllGgmlTypes()) {
    if (WeightFormatOf(type.id) == format) {
      return type.id;
    }
  }
  CHECK(false);  // a format of GGUF files has a type there; others are refused before
  return 0;
}

void AddMetadata(const SyntheticShape& shape, GgufWriter* writer) {
  const std::string prefix = absl::StrCat(shape.architecture, ".");
  const auto number = [&](const char* key, int64_t value) {
    writer->AddUint32(prefix + key, static_cast<uint32_t>(value));
  };
  writer->AddString("general.architecture", shape.architecture);
  writer->AddString("general.name", absl::StrCat("synthetic ", shape.name));
  number("block_count", shape.layers);
  number("context_length", shape.context);
  number("embedding_length", shape.model_dim);
  number("feed_forward_length", shape.hidden_dim);
  number("attention.head_count", shape.query_heads);
  number("attention.head_count_kv", shape.key_value_heads);
  number("attention.key_length", shape.head_dim);
  number("attention.value_length", shape.head_dim);
  number("rope.dimension_count", shape.head_dim);
  number("vocab_size", shape.vocabulary);
  writer->AddFloat32(prefix + "rope.freq_base", shape.rope_base);
  writer->AddFloat32(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  if (shape.experts > 0) {
    number("expert_count", shape.experts);
    number("expert_used_count", shape.experts_used);
    number("expert_feed_forward_length", shape.hidden_dim);
  }
  // llama.cpp's word for a model that speaks in token ids only.
  writer->AddString("tokenizer.ggml.model", "no_vocab");
}

absl::Status WriteBlocks(const std::vector<std::byte>& pool, int64_t block_bytes, int64_t blocks,
                         Draw* draw, GgufWriter* writer) {
  std::vector<std::byte> data;
  while (blocks > 0) {
    const int64_t part = std::min(blocks, kWriteBytes / block_bytes);
    data.resize(static_cast<size_t>(part * block_bytes));
    std::byte* out = data.data();
    for (int64_t block = 0; block < part; ++block, out += block_bytes) {
      std::memcpy(out, pool.data() + static_cast<int64_t>((*draw)() % kPoolBlocks) * block_bytes,
                  static_cast<size_t>(block_bytes));
    }
    RETURN_IF_ERROR(writer->Append(data));
    blocks -= part;
  }
  return absl::OkStatus();
}

absl::Status WriteVector(int64_t size, Draw* draw, GgufWriter* writer) {
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) {
    value = 0.75f + static_cast<float>((*draw)() >> 40) * 0x1p-25f;  // in [0.75, 1.25)
  }
  return writer->Append(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                                            values.size() * sizeof(float)));
}

}  // namespace

absl::Span<const SyntheticShape> SyntheticShapes() { return kShapes; }

absl::StatusOr<SyntheticShape> FindSyntheticShape(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const SyntheticShape& shape : kShapes) {
    if (name == shape.name) {
      return shape;
    }
    names.emplace_back(shape.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no model \"", name, "\" to be like; there are ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<int64_t> SyntheticBytes(const SyntheticModel& model) {
  int64_t bytes = 0;
  for (const PlannedTensor& tensor : TensorsOf(model.shape)) {
    const kernels::WeightFormatInfo& info = kernels::InfoOf(FormatOf(tensor, model.format));
    if (tensor.dimensions[0] % info.storage_values != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s has rows of %d values, and %s stores blocks of %d; choose another format",
          tensor.name, tensor.dimensions[0], info.name, info.storage_values));
    }
    bytes += BlocksOf(tensor, info.format) * info.storage_bytes;
  }
  return bytes;
}

absl::Status WriteSyntheticModel(const SyntheticModel& model, const std::string& path) {
  RETURN_IF_ERROR(SyntheticBytes(model).status());
  const std::vector<PlannedTensor> tensors = TensorsOf(model.shape);
  GgufWriter writer;
  AddMetadata(model.shape, &writer);
  for (const PlannedTensor& tensor : tensors) {
    writer.AddTensor(tensor.name, tensor.dimensions, TypeIdOf(FormatOf(tensor, model.format)));
  }
  RETURN_IF_ERROR(writer.Open(path));
  Draw draw(model.seed);
  const std::vector<std::byte> pool = MakePool(model.format, &draw);
  const std::vector<std::byte> router_pool = MakePool(kernels::WeightFormat::kF32, &draw);
  for (const PlannedTensor& tensor : tensors) {
    if (tensor.is_vector) {
      RETURN_IF_ERROR(WriteVector(tensor.dimensions[0], &draw, &writer));
      continue;
    }
    const kernels::WeightFormat format = FormatOf(tensor, model.format);
    RETURN_IF_ERROR(WriteBlocks(tensor.is_router ? router_pool : pool,
                                kernels::InfoOf(format).storage_bytes, BlocksOf(tensor, format),
                                &draw, &writer));
  }
  return writer.Finish();
}

}  // namespace trireme::weights

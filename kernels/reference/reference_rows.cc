#include "kernels/reference/reference_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/formats/hadamard.h"
#include "kernels/formats/int4_rows.h"
#include "kernels/formats/key_value_codes.h"
#include "kernels/reference/math.h"
#include "kernels/reference/quantize_row.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels::reference {
namespace {

constexpr int kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float Fold(float* lanes) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    for (int i = 0; i < distance; ++i) {
      lanes[i] += lanes[i + distance];
    }
  }
  return lanes[0];
}

// `scale` is that of the element's slot, where the format has scales.
float ReadElement(const KeyValueCache& cache, const std::byte* source, int64_t index,
                  const float* scale) {
  switch (cache.format) {
    case KeyValueFormat::kF16:
      return HalfToFloat(reinterpret_cast<const uint16_t*>(source)[index]);
    case KeyValueFormat::kBF16:
      return BFloat16ToFloat(reinterpret_cast<const uint16_t*>(source)[index]);
    case KeyValueFormat::kF32:
      return reinterpret_cast<const float*>(source)[index];
    case KeyValueFormat::kInt8:
    case KeyValueFormat::kE4M3:
      return NumberOf(cache.format, reinterpret_cast<const uint8_t*>(source)[index]) * *scale;
    case KeyValueFormat::kInt4:
      break;  // not by elements
  }
  return 0;
}

void WriteElement(const KeyValueCache& cache, std::byte* target, int64_t index, float value) {
  if (cache.format == KeyValueFormat::kF16) {
    reinterpret_cast<uint16_t*>(target)[index] = FloatToHalf(value);
  } else {
    reinterpret_cast<float*>(target)[index] = value;
  }
}

void RotateHead(const RopeAndStoreArgs& args, const float* cosines, const float* sines, float* x) {
  if (args.style == RopeStyle::kNone) {
    return;
  }
  const int64_t half = args.rotated_dim / 2;
  for (int64_t p = 0; p < half; ++p) {
    const bool interleaved = args.style == RopeStyle::kInterleaved;
    float& first = x[interleaved ? 2 * p : p];
    float& second = x[interleaved ? 2 * p + 1 : p + half];
    const float u = first;
    const float v = second;
    first = std::fma(u, cosines[p], -(v * sines[p]));
    second = std::fma(v, cosines[p], u * sines[p]);
  }
}

// The part of one tile that one query row sees, and that row's running state.
struct RowState {
  float maximum = -kInfinity;
  float sum = 0;
  float* values = nullptr;       // [head_dim]
  float* tile_values = nullptr;  // [head_dim]
};

struct TileView {
  const KeyValueCache& cache;
  const int32_t* block_table;
  int64_t key_value_head;
  int64_t first_key;  // of the tile
  int64_t begin;      // visible keys, relative to first_key
  int64_t end;

  const std::byte* Head(int64_t key) const {
    return cache.data + block_table[(first_key + key) / kBlockTokens] * cache.BlockBytes() +
           key_value_head * cache.HeadBytes();
  }
  float Key(int64_t key, int64_t d) const {
    const std::byte* head = Head(key);
    const int64_t place = key % kBlockTokens;
    if (cache.format == KeyValueFormat::kInt4) {
      return Int4KeyAt(cache, head, place, d);
    }
    return ReadElement(cache, head, d * kBlockTokens + place, cache.Scales(head) + place);
  }
  float Value(int64_t key, int64_t d) const {
    const std::byte* head = Head(key);
    if (cache.format == KeyValueFormat::kInt4) {
      return Int4ValueAt(cache, head, key % kBlockTokens, d);
    }
    const int64_t place = kBlockTokens + key % kBlockTokens;
    return ReadElement(cache, head, place * cache.head_dim + d, cache.Scales(head) + place);
  }
};

void AttendTile(const TileView& tile, const float* query, float scale, float soft_cap,
                RowState& state) {
  const int64_t head_dim = tile.cache.head_dim;
  float weights[kAttentionTileTokens];
  float tile_maximum = -kInfinity;
  for (int64_t key = tile.begin; key < tile.end; ++key) {
    float score = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      score = std::fma(query[d] * scale, tile.Key(key, d), score);
    }
    score = soft_cap == 0 ? score : SoftCap(score, soft_cap);
    weights[key] = score;
    tile_maximum = std::max(tile_maximum, score);
  }
  float lanes[kLanes] = {};
  std::fill_n(state.tile_values, head_dim, 0.0F);
  for (int64_t key = tile.begin; key < tile.end; ++key) {
    weights[key] = Exp(weights[key] - tile_maximum);
    lanes[key % kLanes] += weights[key];
    for (int64_t d = 0; d < head_dim; ++d) {
      state.tile_values[d] = std::fma(weights[key], tile.Value(key, d), state.tile_values[d]);
    }
  }
  const float maximum = std::max(state.maximum, tile_maximum);
  const float old_factor = Exp(state.maximum - maximum);
  const float tile_factor = Exp(tile_maximum - maximum);
  state.maximum = maximum;
  state.sum = std::fma(state.sum, old_factor, Fold(lanes) * tile_factor);
  for (int64_t d = 0; d < head_dim; ++d) {
    state.values[d] = std::fma(state.values[d], old_factor, state.tile_values[d] * tile_factor);
  }
}

// The sink is a tile with one key whose value is 0.
void MergeSink(float sink, int64_t head_dim, RowState& state) {
  const float maximum = std::max(state.maximum, sink);
  const float old_factor = Exp(state.maximum - maximum);
  state.maximum = maximum;
  state.sum = std::fma(state.sum, old_factor, Exp(sink - maximum));
  for (int64_t d = 0; d < head_dim; ++d) {
    state.values[d] = state.values[d] * old_factor;
  }
}

void AttendRow(const AttentionArgs& args, const AttentionSequence& sequence, int64_t row,
               int64_t head, float* scratch) {
  const int64_t head_dim = args.cache.head_dim;
  const int64_t offset = ((sequence.first_row + row) * args.query_heads + head) * head_dim;
  const int64_t position = sequence.first_position + row;
  const int64_t first_visible =
      args.window == 0 ? 0 : std::max<int64_t>(0, position - args.window + 1);
  RowState state{.values = scratch, .tile_values = scratch + head_dim};
  std::fill_n(state.values, head_dim, 0.0F);
  for (int64_t first_key = first_visible / kAttentionTileTokens * kAttentionTileTokens;
       first_key <= position; first_key += kAttentionTileTokens) {
    const TileView tile{.cache = args.cache,
                        .block_table = sequence.block_table,
                        .key_value_head = args.key_value_head_of[head],
                        .first_key = first_key,
                        .begin = std::max<int64_t>(0, first_visible - first_key),
                        .end = std::min<int64_t>(kAttentionTileTokens, position + 1 - first_key)};
    AttendTile(tile, args.query + offset, args.scale, args.soft_cap, state);
  }
  if (args.sinks != nullptr) {
    MergeSink(args.sinks[head], head_dim, state);
  }
  for (int64_t d = 0; d < head_dim; ++d) {
    args.output[offset + d] = state.values[d] / state.sum;
  }
  if (args.cache.format == KeyValueFormat::kInt4) {
    ApplyHadamard(args.output + offset, head_dim);
  }
}

float Activated(const GatedActivationArgs& args, float gate, const float* up) {
  float y = 0;
  switch (args.activation) {
    case Activation::kSilu:
      y = Silu(gate);
      break;
    case Activation::kGeluTanh:
      y = GeluTanh(gate);
      break;
    case Activation::kRelu2:
      y = Relu2(gate);
      break;
    case Activation::kClampedSwish:
      return ClampedSwish(gate, *up, args.swish_limit, args.swish_alpha);
  }
  return up == nullptr ? y : y * *up;
}

}  // namespace

void RmsNorm(const Execution& /*execution*/, const RmsNormArgs& args) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    float* x = args.x + token * args.columns;
    float* y = args.y + token * args.columns;
    float lanes[kLanes] = {};
    for (int64_t column = 0; column < args.columns; ++column) {
      if (args.delta != nullptr) {
        x[column] += args.delta[token * args.columns + column];
      }
      lanes[column % kLanes] = std::fma(x[column], x[column], lanes[column % kLanes]);
    }
    const float mean = Fold(lanes) / static_cast<float>(args.columns);
    const float root = std::sqrt(mean + args.epsilon);
    for (int64_t column = 0; column < args.columns; ++column) {
      y[column] = x[column] / root * args.gain[column];
    }
    if (args.quantized != nullptr) {
      QuantizeRow(y, args.columns, args.quantized, token, args.tokens);
    }
  }
}

void LayerNorm(const Execution& /*execution*/, const LayerNormArgs& args) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    float* x = args.x + token * args.columns;
    float* y = args.y + token * args.columns;
    float lanes[kLanes] = {};
    for (int64_t column = 0; column < args.columns; ++column) {
      if (args.delta != nullptr) {
        x[column] += args.delta[token * args.columns + column];
      }
      lanes[column % kLanes] += x[column];
    }
    const float mean = Fold(lanes) / static_cast<float>(args.columns);
    float squares[kLanes] = {};
    for (int64_t column = 0; column < args.columns; ++column) {
      const float centred = x[column] - mean;
      squares[column % kLanes] = std::fma(centred, centred, squares[column % kLanes]);
    }
    const float root = std::sqrt(Fold(squares) / static_cast<float>(args.columns) + args.epsilon);
    for (int64_t column = 0; column < args.columns; ++column) {
      const float unit = (x[column] - mean) / root;
      y[column] = args.bias == nullptr ? unit * args.gain[column]
                                       : std::fma(unit, args.gain[column], args.bias[column]);
    }
    if (args.quantized != nullptr) {
      QuantizeRow(y, args.columns, args.quantized, token, args.tokens);
    }
  }
}

void GatedActivation(const Execution& /*execution*/, const GatedActivationArgs& args) {
  for (int64_t i = 0; i < args.tokens * args.columns; ++i) {
    args.y[i] = Activated(args, args.gate[i], args.up == nullptr ? nullptr : args.up + i);
  }
  for (int64_t token = 0; args.quantized != nullptr && token < args.tokens; ++token) {
    QuantizeRow(args.y + token * args.columns, args.columns, args.quantized, token, args.tokens);
  }
}

void Add(const Execution& /*execution*/, const AddArgs& args) {
  for (int64_t i = 0; i < args.count; ++i) {
    args.x[i] += args.delta[i];
  }
}

void Adjust(const Execution& /*execution*/, const AdjustArgs& args) {
  for (int64_t i = 0; i < args.tokens * args.columns; ++i) {
    const float biased = args.bias == nullptr ? args.x[i] : args.x[i] + args.bias[i % args.columns];
    const float scaled = biased * args.scale;
    args.x[i] = args.soft_cap == 0 ? scaled : SoftCap(scaled, args.soft_cap);
  }
}

void SquareSums(const Execution& /*execution*/, const SquareSumsArgs& args) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    const float* x = args.x + token * args.columns;
    for (int64_t first = 0; first < args.columns; first += args.segment_columns) {
      float lanes[kLanes] = {};
      const int64_t last = std::min(first + args.segment_columns, args.columns);
      for (int64_t column = first; column < last; ++column) {
        float& lane = lanes[(column - first) % kLanes];
        lane = std::fma(x[column], x[column], lane);
      }
      args.sums[token * args.sums_stride + first / args.segment_columns] = Fold(lanes);
    }
  }
}

void ScaleRows(const Execution& /*execution*/, const ScaleRowsArgs& args) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    float* y = args.y + token * args.columns;
    for (int64_t column = 0; column < args.columns; ++column) {
      y[column] = args.x[token * args.columns + column] / args.roots[token] * args.gain[column];
    }
    if (args.quantized != nullptr) {
      QuantizeRow(y, args.columns, args.quantized, token, args.tokens);
    }
  }
}

void CombineRows(const Execution& /*execution*/, const CombineRowsArgs& args) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    const int32_t* rows = args.rows + token * args.terms;
    const float* weights = args.weights + token * args.terms;
    for (int64_t column = 0; column < args.columns; ++column) {
      float sum = weights[0] * args.x[rows[0] * args.columns + column];
      for (int64_t i = 1; i < args.terms; ++i) {
        sum = std::fma(weights[i], args.x[rows[i] * args.columns + column], sum);
      }
      args.y[token * args.columns + column] = sum;
    }
  }
}

void RopeAndStore(const Execution& /*execution*/, const RopeAndStoreArgs& args) {
  const KeyValueCache& cache = args.cache;
  const int64_t head_dim = cache.head_dim;
  for (int64_t token = 0; token < args.tokens; ++token) {
    const float* cosines = args.cosines + token * (args.rotated_dim / 2);
    const float* sines = args.sines + token * (args.rotated_dim / 2);
    for (int64_t head = 0; head < args.query_heads; ++head) {
      float* query = args.query + (token * args.query_heads + head) * head_dim;
      RotateHead(args, cosines, sines, query);
      if (cache.format == KeyValueFormat::kInt4) {
        ApplyHadamard(query, head_dim);
      }
    }
    const int64_t block = args.slots[token] / kBlockTokens;
    const int64_t place = args.slots[token] % kBlockTokens;
    for (int64_t head = 0; head < cache.key_value_heads; ++head) {
      const int64_t offset = (token * cache.key_value_heads + head) * head_dim;
      RotateHead(args, cosines, sines, args.key + offset);
      std::byte* target = cache.data + block * cache.BlockBytes() + head * cache.HeadBytes();
      if (cache.format == KeyValueFormat::kInt4) {
        StoreInt4(cache, args.key + offset, args.value + offset, place, target);
        continue;
      }
      if (cache.format != KeyValueFormat::kF16 && cache.format != KeyValueFormat::kF32) {
        StoreNarrow(cache, args.key + offset, args.value + offset, place, target);
        continue;
      }
      for (int64_t d = 0; d < head_dim; ++d) {
        WriteElement(cache, target, d * kBlockTokens + place, args.key[offset + d]);
        WriteElement(cache, target, (kBlockTokens + place) * head_dim + d, args.value[offset + d]);
      }
    }
  }
}

void Attention(const Execution& execution, const AttentionArgs& args) {
  for (int64_t index = 0; index < args.sequence_count; ++index) {
    const AttentionSequence& sequence = args.sequences[index];
    execution.pool->ParallelFor(
        sequence.rows * args.query_heads, [&](int64_t task_index, int worker_index) {
          AttendRow(args, sequence, task_index / args.query_heads, task_index % args.query_heads,
                    reinterpret_cast<float*>(execution.WorkerScratch(worker_index)));
        });
  }
}

void Argmax(const Execution& /*execution*/, const ArgmaxArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.columns;
    float best = -kInfinity;
    int32_t best_index = 0;
    for (int64_t column = 0; column < args.columns; ++column) {
      if (x[column] > best) {
        best = x[column];
        best_index = static_cast<int32_t>(column);
      }
    }
    args.index[row] = best_index;
    args.maximum[row] = best;
  }
}

}  // namespace trireme::kernels::reference

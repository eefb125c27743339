#include "runtime/model/expert_load.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace trireme::model {
namespace {

static_assert(std::endian::native == std::endian::little, "pieces are copied as they lie");

// A piece: the index of its first counter, then counters.
constexpr size_t kIndexBytes = sizeof(uint32_t);
constexpr size_t kCounterBytes = sizeof(uint64_t);

std::vector<size_t> FirstCounters(const spec::ModelSpec& model) {
  std::vector<size_t> first = {0};
  for (const spec::LayerSpec& layer : model.layers) {
    const auto& experts = layer.feed_forward.experts;
    first.push_back(first.back() + (experts.has_value() ? static_cast<size_t>(experts->count) : 0));
  }
  return first;
}

}  // namespace

double BusiestRatio(absl::Span<const uint64_t> tokens) {
  const uint64_t sum = std::accumulate(tokens.begin(), tokens.end(), uint64_t{0});
  return sum == 0 ? 0
                  : static_cast<double>(*std::max_element(tokens.begin(), tokens.end())) *
                        static_cast<double>(tokens.size()) / static_cast<double>(sum);
}

ExpertLoad::ExpertLoad(const spec::ModelSpec& model)
    : first_counters_(FirstCounters(model)), counters_(first_counters_.back()) {}

void ExpertLoad::Add(int64_t layer, const int32_t* begins) {
  const size_t first = FirstOf(layer);
  const size_t experts = FirstOf(layer + 1) - first;
  for (size_t expert = 0; expert < experts; ++expert) {
    // Only this thread writes: no locked addition is needed.
    std::atomic<uint64_t>& counter = counters_[first + expert];
    const auto tokens = static_cast<uint64_t>(begins[expert + 1] - begins[expert]);
    counter.store(counter.load(std::memory_order_relaxed) + tokens, std::memory_order_relaxed);
  }
}

std::vector<ExpertLayerLoad> ExpertLoad::Layers(topology::Range layers) const {
  std::vector<ExpertLayerLoad> loads;
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) {
    ExpertLayerLoad load = {.layer = layer};
    for (size_t index = FirstOf(layer); index < FirstOf(layer + 1); ++index) {
      load.tokens.push_back(counters_[index].load(std::memory_order_relaxed));
    }
    if (!load.tokens.empty()) {
      loads.push_back(std::move(load));
    }
  }
  return loads;
}

std::string ExpertLoad::Piece(topology::Range layers, size_t bytes_max, size_t* cursor) const {
  const size_t begin = FirstOf(layers.begin);
  const size_t end = FirstOf(layers.end);
  if (begin == end) {
    return "";
  }
  if (*cursor < begin || *cursor >= end) {
    *cursor = begin;
  }
  const size_t count = std::min(end - *cursor, (bytes_max - kIndexBytes) / kCounterBytes);
  std::string piece(kIndexBytes + count * kCounterBytes, '\0');
  const auto index = static_cast<uint32_t>(*cursor);
  std::memcpy(piece.data(), &index, kIndexBytes);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = counters_[*cursor + i].load(std::memory_order_relaxed);
    std::memcpy(piece.data() + kIndexBytes + i * kCounterBytes, &value, kCounterBytes);
  }
  *cursor += count;
  return piece;
}

bool ExpertLoad::TakePiece(absl::string_view piece) {
  if (piece.size() < kIndexBytes || (piece.size() - kIndexBytes) % kCounterBytes != 0) {
    return false;
  }
  uint32_t index = 0;
  std::memcpy(&index, piece.data(), kIndexBytes);
  const size_t count = (piece.size() - kIndexBytes) / kCounterBytes;
  if (index > counters_.size() || count > counters_.size() - index) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, piece.data() + kIndexBytes + i * kCounterBytes, kCounterBytes);
    counters_[index + i].store(value, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace trireme::model

#include "runtime/cache/kv_cache.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "kernels/kernel_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/buffer.h"

namespace trireme::cache {
namespace {

kernels::KeyValueCache LayerView(const KvCacheShape& shape, std::byte* data) {
  return {.format = shape.format,
          .data = data,
          .key_value_heads = shape.key_value_heads,
          .head_dim = shape.head_dim};
}

}  // namespace

int64_t KvLayerBytes(const KvCacheShape& shape) {
  return shape.blocks * LayerView(shape, nullptr).BlockBytes();
}

int64_t KvCacheBytes(const KvCacheShape& shape) { return shape.layers * KvLayerBytes(shape); }

absl::StatusOr<KvCache> KvCache::Create(const KvCacheShape& shape) {
  KvCache cache(shape);
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    ASSIGN_OR_RETURN(device::DeviceBuffer buffer,
                     device::DeviceBuffer::Create(
                         KvLayerBytes(shape), absl::StrFormat("the KV cache of layer %d", layer)));
    cache.layers_.push_back(LayerView(shape, buffer.data()));
    cache.buffers_.push_back(std::move(buffer));
  }
  return cache;
}

}  // namespace trireme::cache

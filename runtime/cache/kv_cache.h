// The keys and values of one rank: one buffer a layer, cut into blocks of kBlockTokens slots. Which
// block belongs to which sequence is the controller's business (block_pool); a rank only reads the
// block tables of a plan.
#ifndef TRIREME_RUNTIME_CACHE_KV_CACHE_H_
#define TRIREME_RUNTIME_CACHE_KV_CACHE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "runtime/device/buffer.h"

namespace trireme::cache {

struct KvCacheShape {
  kernels::KeyValueFormat format = kernels::KeyValueFormat::kF16;
  int64_t layers = 0;
  int64_t key_value_heads = 0;  // of this rank
  int64_t head_dim = 0;
  int64_t blocks = 0;
};

// Bytes of one layer's buffer, and of all: exact.
int64_t KvLayerBytes(const KvCacheShape& shape);
int64_t KvCacheBytes(const KvCacheShape& shape);

class KvCache {
 public:
  // ResourceExhausted when the memory is not there. Zeroed: an unwritten slot is a finite number.
  static absl::StatusOr<KvCache> Create(const KvCacheShape& shape);

  const KvCacheShape& shape() const { return shape_; }
  const kernels::KeyValueCache& layer(int64_t layer_index) const { return layers_[layer_index]; }

 private:
  explicit KvCache(const KvCacheShape& shape) : shape_(shape) {}

  KvCacheShape shape_;
  std::vector<device::DeviceBuffer> buffers_;   // [layers]
  std::vector<kernels::KeyValueCache> layers_;  // views of buffers_
};

}  // namespace trireme::cache

#endif  // TRIREME_RUNTIME_CACHE_KV_CACHE_H_

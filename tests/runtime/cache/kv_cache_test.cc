#include "runtime/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trireme::cache {
namespace {

constexpr KvCacheShape kShape = {.format = kernels::KeyValueFormat::kF16,
                                 .layers = 3,
                                 .key_value_heads = 2,
                                 .head_dim = 64,
                                 .blocks = 5};

TEST(KvCacheTest, BytesAreExact) {
  // blocks x slots x heads x (key and value) x head width x 2 bytes.
  EXPECT_EQ(KvLayerBytes(kShape), 5 * 16 * 2 * 2 * 64 * 2);
  EXPECT_EQ(KvCacheBytes(kShape), 3 * KvLayerBytes(kShape));
  KvCacheShape wide = kShape;
  wide.format = kernels::KeyValueFormat::kF32;
  EXPECT_EQ(KvCacheBytes(wide), 2 * KvCacheBytes(kShape));
  // A byte a value, and two float32 scales for each slot and head.
  KvCacheShape narrow = kShape;
  narrow.format = kernels::KeyValueFormat::kInt8;
  EXPECT_EQ(KvLayerBytes(narrow), 5 * 16 * 2 * (2 * 64 + 2 * 4));
  // Six bits of a key, five of a value, a byte of scale for each 64 channels.
  narrow.format = kernels::KeyValueFormat::kInt4;
  EXPECT_EQ(KvLayerBytes(narrow), 5 * 16 * 2 * (48 + 40 + 2));
}

TEST(KvCacheTest, LayersAreApartAndZeroed) {
  const auto cache = KvCache::Create(kShape);
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_NE(cache->layer(0).data, cache->layer(1).data);
  const std::byte* const data = cache->layer(2).data;
  EXPECT_TRUE(std::all_of(data, data + KvLayerBytes(kShape),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(KvCacheTest, MemoryThatIsNotThereIsRefused) {
  KvCacheShape huge = kShape;
  huge.blocks = int64_t{1} << 40;
  EXPECT_TRUE(absl::IsResourceExhausted(KvCache::Create(huge).status()));
}

}  // namespace
}  // namespace trireme::cache

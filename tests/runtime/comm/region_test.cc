#include "runtime/comm/region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trireme::comm {
namespace {

std::shared_ptr<std::byte> ZeroMemory(int ranks) {
  const auto bytes = static_cast<size_t>(Region::Bytes(ranks));
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  std::fill(memory, memory + bytes, std::byte{0});
  return {memory, std::free};
}

TEST(RegionTest, PartsOfRanksDoNotOverlap) {
  constexpr int kRanks = 3;
  const std::shared_ptr<std::byte> memory = ZeroMemory(kRanks);
  Region region(memory, kRanks);
  // Each slot and ring in one list of [begin, end), which must be disjoint and inside the memory.
  std::vector<std::pair<std::byte*, int64_t>> parts;
  for (int rank = 0; rank < kRanks; ++rank) {
    parts.emplace_back(region.slot(rank, 0), kSlotBytes);
    parts.emplace_back(region.slot(rank, 1), kSlotBytes);
    parts.emplace_back(reinterpret_cast<std::byte*>(&region.rounds(rank)), 64);
    for (int to = 0; to < kRanks; ++to) {
      parts.emplace_back(region.ring_bytes(rank, to), kRingBytes);
      parts.emplace_back(reinterpret_cast<std::byte*>(&region.ring(rank, to)), 128);
    }
  }
  std::sort(parts.begin(), parts.end());
  for (size_t i = 1; i < parts.size(); ++i) {
    EXPECT_LE(parts[i - 1].first + parts[i - 1].second, parts[i].first);
  }
  EXPECT_GE(parts.front().first, memory.get());
  EXPECT_LE(parts.back().first + parts.back().second, memory.get() + Region::Bytes(kRanks));
}

TEST(RegionTest, AllViewsSeeTheFirstAbort) {
  const std::shared_ptr<std::byte> memory = ZeroMemory(2);
  Region one(memory, 2);
  Region other(memory, 2);
  EXPECT_TRUE(other.AbortReason().ok());
  one.Abort(absl::UnavailableError("first"));
  other.Abort(absl::InternalError("second"));
  EXPECT_EQ(one.AbortReason(), absl::UnavailableError("first"));
  EXPECT_EQ(other.AbortReason(), absl::UnavailableError("first"));
}

TEST(RegionTest, ALongReasonIsCut) {
  Region region(ZeroMemory(1), 1);
  region.Abort(absl::UnavailableError(std::string(5000, 'x')));
  EXPECT_EQ(region.AbortReason(), absl::UnavailableError(std::string(1000, 'x')));
}

}  // namespace
}  // namespace trireme::comm

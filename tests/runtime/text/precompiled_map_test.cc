#include "runtime/text/precompiled_map.h"

#include "gtest/gtest.h"

namespace trireme::text {
namespace {

std::string LittleEndian(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i)));
  }
  return bytes;
}

// A double array of one key, "A", for the replacement "aa": the root has the offset 1, so that 'A'
// (0x41) leads to unit 0x40, whose offset 1 leads to its leaf, unit 0x41, with the value 0.
std::string MapOfOneKey() {
  std::string units;
  for (uint32_t i = 0; i < 0x42; ++i) {
    const uint32_t unit = i == 0      ? 1u << 10
                          : i == 0x40 ? 1u << 10 | 1u << 8 | 0x41u
                          : i == 0x41 ? 1u << 31
                                      : 0u;
    units += LittleEndian(unit);
  }
  return LittleEndian(static_cast<uint32_t>(units.size())) + units + std::string("aa\0", 3);
}

TEST(PrecompiledMap, ReplacesTheSpellingsOfItsTrie) {
  const auto map = PrecompiledMap::Create(MapOfOneKey());
  ASSERT_TRUE(map.ok()) << map.status();
  const auto entry = map->FindLongest("AB");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->bytes, 1u);
  EXPECT_EQ(entry->replacement, "aa");
  EXPECT_FALSE(map->FindLongest("B").has_value());
  EXPECT_FALSE(map->FindShortest("").has_value());
  EXPECT_EQ(map->ApplyByGraphemes("BAB"), "BaaB");
  // As a whole: the cluster of A and an accent begins with a spelling.
  EXPECT_EQ(map->ApplyByGraphemes("A\xcc\x81"), "aa");
}

TEST(PrecompiledMap, RefusesCutsAndStaysInsideHostileTries) {
  const std::string bytes = MapOfOneKey();
  for (const size_t size : {size_t{0}, size_t{3}, size_t{4}, size_t{100}}) {
    EXPECT_FALSE(PrecompiledMap::Create(bytes.substr(0, size)).ok()) << size;
  }
  std::string wild = bytes;
  for (size_t i = 4; i < 4 + 0x42 * 4; ++i) {
    wild[i] = '\xff';
  }
  const auto map = PrecompiledMap::Create(wild);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->ApplyByGraphemes("A\xff"), "A\xff");
}

}  // namespace
}  // namespace trireme::text

#include "kernels/formats/int4_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/formats/hadamard.h"
#include "kernels/formats/int4_layout.h"
#include "kernels/scalar_types.h"
#include "tests/kernels/check_harness.h"

namespace trireme::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// n (2400 + n^2) of n = 2 code - 31, and n (10000 + n^2) of n = 2 code - 63.
TEST(Int4RowsTest, LevelsAreTheWorkedOnes) {
  EXPECT_EQ(kInt4Value.Level(16), 1 * (2400 + 1));
  EXPECT_EQ(kInt4Value.Level(17), 3 * (2400 + 9));
  EXPECT_EQ(kInt4Value.Level(31), 31 * (2400 + 961));
  EXPECT_EQ(kInt4Key.Level(32), 1 * (10000 + 1));
  EXPECT_EQ(kInt4Key.Level(63), 63 * (10000 + 3969));
  for (const Int4Code& code : {kInt4Key, kInt4Value}) {
    for (int i = 0; i < code.Levels(); ++i) {
      EXPECT_EQ(code.Level(i), -code.Level(code.Levels() - 1 - i));
    }
  }
}

// In units; the first number is the last level, so scale 1. 4814 and 20014 lie halfway between the
// first two positive levels, 2401 and 7227, 10001 and 30027.
TEST(Int4RowsTest, CodesAreTheWorkedOnes) {
  struct Case {
    Int4Code code;
    std::vector<float> numbers;
    std::vector<uint8_t> codes;
  };
  for (const Case& c : {Case{kInt4Value,
                             {104191, -2401, 7227, -12125, 4813, -4813, 4814, 0},
                             {31, 15, 17, 13, 16, 15, 17, 16}},
                        Case{kInt4Key,
                             {880047, -10001, 30027, -50125, 20013, -20013, 20014, 0},
                             {63, 31, 33, 29, 32, 31, 33, 32}}}) {
    std::vector<float> x = c.numbers;
    for (float& value : x) {
      value *= c.code.unit;
    }
    std::vector<uint8_t> codes(x.size());
    const uint8_t scale =
        EncodeInt4(c.code, x.data(), static_cast<int64_t>(x.size()), codes.data());
    EXPECT_EQ(codes, c.codes);
    EXPECT_EQ(scale, 0x78);  // 1 is 0x3C00
    EXPECT_EQ(HalfToFloat(Int4ScaleBits(scale)), 1);
  }
}

TEST(Int4RowsTest, ZerosStayZeros) {
  const std::vector<float> x(16, 0);
  std::vector<uint8_t> codes(x.size(), 9);
  EXPECT_EQ(EncodeInt4(kInt4Key, x.data(), 16, codes.data()), 0);
}

TEST(Int4RowsTest, WhatIsNotFiniteOrTooLargeIsNotHidden) {
  for (const float bad : {kNan, kInfinity, -kInfinity, 1e6F, -1e6F}) {
    std::vector<float> x(16, 1);
    x[5] = bad;
    std::vector<uint8_t> codes(x.size(), 9);
    const uint8_t scale = EncodeInt4(kInt4Value, x.data(), 16, codes.data());
    EXPECT_TRUE(std::isnan(HalfToFloat(Int4ScaleBits(scale)))) << bad;
    EXPECT_EQ(codes, std::vector<uint8_t>(16, 0)) << bad;
  }
}

double ScaleOf(const Int4Code& code, int scale_byte) {
  return static_cast<double>(HalfToFloat(Int4ScaleBits(static_cast<uint8_t>(scale_byte)))) *
         static_cast<double>(code.unit);
}

// The code of the nearest level of a scale, and the squared error of all of them.
struct Nearest {
  std::vector<uint8_t> codes;
  double error;
};
Nearest NearestCodes(const Int4Code& code, const std::vector<float>& x, int scale_byte) {
  Nearest nearest{{}, 0};
  for (const float value : x) {
    double least = std::numeric_limits<double>::infinity();
    int best = 0;
    for (int i = 0; i < code.Levels(); ++i) {
      const double difference = static_cast<double>(value) -
                                static_cast<double>(code.Level(i)) * ScaleOf(code, scale_byte);
      if (difference * difference < least) {
        least = difference * difference;
        best = i;
      }
    }
    nearest.codes.push_back(static_cast<uint8_t>(best));
    nearest.error += least;
  }
  return nearest;
}

TEST(Int4RowsTest, CodesAreTheNearestOfTheBetterScale) {
  check::Random random(11);
  for (const Int4Code& code : {kInt4Key, kInt4Value}) {
    for (const int64_t count : {1, 8, 15, 32, 50, 64}) {
      for (int group = 0; group < 100; ++group) {
        std::vector<float> x(static_cast<size_t>(count));
        random.FillNormal(x.data(), count);
        double largest = 0;
        for (float& value : x) {
          value *= std::exp2(static_cast<float>(group % 20 - 10));
          largest = std::max(largest, std::fabs(static_cast<double>(value)));
        }
        std::vector<uint8_t> codes(x.size());
        const int scale = EncodeInt4(code, x.data(), count, codes.data());
        const Nearest nearest = NearestCodes(code, x, scale);
        ASSERT_EQ(codes, nearest.codes) << count;
        // One of the two scales around the largest magnitude; float32 sums told them apart.
        const auto reach = [&](int byte) {
          return ScaleOf(code, byte) * static_cast<double>(code.Level(code.Levels() - 1));
        };
        const bool is_larger = reach(scale) >= largest;
        EXPECT_LE(is_larger ? reach(scale - 1) : reach(scale), largest * 1.001) << count;
        EXPECT_GE(is_larger ? reach(scale) : reach(scale + 1), largest) << count;
        const Nearest other = NearestCodes(code, x, is_larger ? scale - 1 : scale + 1);
        EXPECT_LE(nearest.error, other.error * (1 + 1e-5)) << count;
      }
    }
  }
}

// What 64 normal numbers lose of their squares, as in a simulation in numpy that shares no code
// with this.
TEST(Int4RowsTest, NormalNumbersLoseASmallPartOfTheirSquares) {
  const auto lost = [](const Int4Code& code) {
    check::Random random(12);
    double errors = 0;
    double squares = 0;
    for (int group = 0; group < 2000; ++group) {
      std::vector<float> x(kInt4Group);
      random.FillNormal(x.data(), kInt4Group);
      std::vector<uint8_t> codes(x.size());
      errors += NearestCodes(code, x, EncodeInt4(code, x.data(), kInt4Group, codes.data())).error;
      for (const float value : x) {
        squares += static_cast<double>(value) * static_cast<double>(value);
      }
    }
    return errors / squares;
  };
  EXPECT_NEAR(lost(kInt4Value), 0.00187, 0.00005);
  EXPECT_NEAR(lost(kInt4Key), 0.000481, 0.000012);
}

TEST(Int4RowsTest, BytesAreExact) {
  // 16 slots: six bits of a key, five of a value, a scale of each.
  EXPECT_EQ((Int4Layout{.head_dim = 64, .tokens = 16}.Bytes()), 16 * (48 + 40 + 2));
  EXPECT_EQ((Int4Layout{.head_dim = 128, .tokens = 16}.Bytes()), 16 * (96 + 80 + 2 * 2));
  // Codes of 32 and of 96 channels.
  EXPECT_EQ((Int4Layout{.head_dim = 24, .tokens = 16}.Bytes()), 16 * (24 + 20 + 2));
  EXPECT_EQ((Int4Layout{.head_dim = 80, .tokens = 16}.Bytes()), 16 * (72 + 60 + 2 * 2));
  const KeyValueCache cache{.format = KeyValueFormat::kInt4, .key_value_heads = 3, .head_dim = 64};
  EXPECT_EQ(cache.BlockBytes(), 3 * 16 * 90);
}

class StoredHead {
 public:
  explicit StoredHead(int64_t head_dim)
      : cache_{.format = KeyValueFormat::kInt4, .key_value_heads = 1, .head_dim = head_dim},
        bytes_(cache_.HeadBytes()) {}

  void Store(std::vector<float> key, std::vector<float> value, int64_t place) {
    StoreInt4(cache_, key.data(), value.data(), place, bytes_.data());
  }
  float Key(int64_t place, int64_t channel) {
    return Int4KeyAt(cache_, bytes_.data(), place, channel);
  }
  float Value(int64_t place, int64_t channel) {
    return Int4ValueAt(cache_, bytes_.data(), place, channel);
  }
  bool GuardsAreIntact() const { return bytes_.GuardsAreIntact(); }

 private:
  KeyValueCache cache_;
  check::GuardedBytes bytes_;
};

struct Row {
  std::vector<float> key, value;
};

Row RandomRow(int64_t head_dim, uint64_t seed) {
  Row row{std::vector<float>(static_cast<size_t>(head_dim)),
          std::vector<float>(static_cast<size_t>(head_dim))};
  check::Random random(seed);
  random.FillNormal(row.key.data(), head_dim);
  random.FillNormal(row.value.data(), head_dim);
  return row;
}

std::vector<float> Transformed(std::vector<float> row) {
  ApplyHadamard(row.data(), static_cast<int64_t>(row.size()));
  return row;
}

// Root mean square error of a group of a row.
template <typename Read>
float ErrorOf(const std::vector<float>& row, int64_t first, int64_t count, const Read& read) {
  float sum = 0;
  for (int64_t i = first; i < first + count; ++i) {
    const float difference = read(i) - row[static_cast<size_t>(i)];
    sum += difference * difference;
  }
  return std::sqrt(sum / static_cast<float>(count));
}

// Half the widest step, which is the last, of a scale at most an eighth above what reaches the
// largest number.
float Tolerance(const Int4Code& code, const std::vector<float>& row, int64_t first, int64_t count) {
  float largest = 0;
  for (int64_t i = first; i < first + count; ++i) {
    largest = std::max(largest, std::fabs(row[static_cast<size_t>(i)]));
  }
  const int last = code.Levels() - 1;
  return largest * 1.126F * (1 - code.Level(last - 1) / code.Level(last)) / 2;
}

TEST(Int4RowsTest, EverySlotKeepsItsRowsToHalfAStep) {
  for (const int64_t head_dim : {8, 24, 64, 80, 96, 128, 576}) {
    StoredHead head(head_dim);
    std::vector<Row> rows;
    for (int64_t place = kBlockTokens - 1; place >= 0; --place) {
      rows.push_back(RandomRow(head_dim, static_cast<uint64_t>(head_dim + place)));
      head.Store(rows.back().key, rows.back().value, place);
    }
    EXPECT_TRUE(head.GuardsAreIntact());
    for (int64_t place = 0; place < kBlockTokens; ++place) {
      const Row& row = rows[static_cast<size_t>(kBlockTokens - 1 - place)];
      const std::vector<float> key = Transformed(row.key);
      const std::vector<float> value = Transformed(row.value);
      for (int64_t first = 0; first < head_dim; first += kInt4Group) {
        const int64_t count = std::min<int64_t>(kInt4Group, head_dim - first);
        EXPECT_LE(ErrorOf(key, first, count, [&](int64_t i) { return head.Key(place, i); }),
                  Tolerance(kInt4Key, key, first, count))
            << head_dim << " slot " << place << " channel " << first;
        EXPECT_LE(ErrorOf(value, first, count, [&](int64_t i) { return head.Value(place, i); }),
                  Tolerance(kInt4Value, value, first, count))
            << head_dim << " slot " << place << " channel " << first;
      }
    }
  }
}

TEST(Int4RowsTest, ARowWithNanIsNan) {
  StoredHead head(64);
  Row row = RandomRow(64, 1);
  row.key[3] = kNan;
  row.value[60] = kInfinity;
  head.Store(row.key, row.value, 0);
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(std::isnan(head.Key(0, i)));
    EXPECT_TRUE(std::isnan(head.Value(0, i)));
  }
}

}  // namespace
}  // namespace trireme::kernels

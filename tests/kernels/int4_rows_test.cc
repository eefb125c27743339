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

// specs/kv-and-spec.md 4, b = 4; scale and minimum to 11 bits.
TEST(Int4RowsTest, CodesAreTheWorkedOnes) {
  const std::vector<float> x = {-1.03F, 0.46F, 2, 0.11F, 0, -0.42F, 1.27F, 0.72F};
  std::vector<uint8_t> codes(x.size());
  const Int4Scale scale = EncodeInt4(x.data(), static_cast<int64_t>(x.size()), codes.data());
  EXPECT_EQ(codes, (std::vector<uint8_t>{0, 7, 15, 6, 5, 3, 11, 9}));
  EXPECT_NEAR(HalfToFloat(scale.scale), 0.202F, 0.202F * 0x1p-11F);
  EXPECT_NEAR(HalfToFloat(scale.minimum), -1.03F, 1.03F * 0x1p-11F);
}

TEST(Int4RowsTest, EqualNumbersNeedNoScale) {
  const std::vector<float> x(16, -2.5F);
  std::vector<uint8_t> codes(x.size(), 9);
  const Int4Scale scale = FitInt4(x.data(), 16, codes.data());
  EXPECT_EQ(codes, std::vector<uint8_t>(16, 0));
  EXPECT_EQ(HalfToFloat(scale.scale), 0);
  EXPECT_EQ(HalfToFloat(scale.minimum), -2.5F);
}

TEST(Int4RowsTest, WhatIsNotFiniteOrTooLargeIsNotHidden) {
  for (const float bad : {kNan, kInfinity, -kInfinity, 1e6F, -1e6F}) {
    std::vector<float> x(16, 1);
    x[5] = bad;
    std::vector<uint8_t> codes(x.size(), 9);
    const Int4Scale scale = FitInt4(x.data(), 16, codes.data());
    EXPECT_TRUE(std::isnan(HalfToFloat(scale.minimum))) << bad;
    EXPECT_TRUE(std::isnan(HalfToFloat(scale.scale))) << bad;
    EXPECT_EQ(codes, std::vector<uint8_t>(16, 0)) << bad;
  }
}

double SquaredError(const std::vector<float>& x, Int4Scale scale,
                    const std::vector<uint8_t>& codes) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference =
        static_cast<double>(x[i]) - (codes[i] * static_cast<double>(HalfToFloat(scale.scale)) +
                                     static_cast<double>(HalfToFloat(scale.minimum)));
    sum += difference * difference;
  }
  return sum;
}

// 1/6 and 1/8 less in a simulation of normal numbers in doubles, 80000 groups of 16, 40000 of 32.
TEST(Int4RowsTest, FittingNeverLosesAndTakesATenthOffTheError) {
  check::Random random(11);
  for (const int64_t count : {16, 32}) {
    double plain = 0;
    double fitted = 0;
    for (int group = 0; group < 1000; ++group) {
      std::vector<float> x(static_cast<size_t>(count));
      random.FillNormal(x.data(), count);
      std::vector<uint8_t> codes(x.size());
      const Int4Scale encoded = EncodeInt4(x.data(), count, codes.data());
      const double before = SquaredError(x, encoded, codes);
      const Int4Scale refitted = FitInt4(x.data(), count, codes.data());
      const double after = SquaredError(x, refitted, codes);
      EXPECT_LE(after, before * (1 + 1e-5));  // sums in float32 told them apart
      plain += before;
      fitted += after;
    }
    EXPECT_LT(fitted, 0.9 * plain) << count;
  }
}

TEST(Int4RowsTest, BytesAreExact) {
  // 16 slots: codes of key and value; 4 groups of a key and 2 of a value with two halves each; an
  // order of two bytes.
  EXPECT_EQ((Int4Layout{.head_dim = 64, .tokens = 16}.Bytes()), 16 * (64 + 4 * 4 + 2 * 4 + 2));
  // Codes of 32 channels; 2 groups of a key, 1 of a value.
  EXPECT_EQ((Int4Layout{.head_dim = 24, .tokens = 16}.Bytes()), 16 * (32 + 2 * 4 + 4 + 2));
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
    return Int4Key(cache_, bytes_.data(), place, channel);
  }
  float Value(int64_t place, int64_t channel) {
    return Int4Value(cache_, bytes_.data(), place, channel);
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

// Half a step at most, and what half precision takes off scale and minimum: 2^-11 of them.
float Tolerance(const std::vector<float>& row, int64_t first, int64_t count) {
  float largest = 0;
  for (int64_t i = first; i < first + count; ++i) {
    largest = std::max(largest, std::fabs(row[static_cast<size_t>(i)]));
  }
  return 2 * largest / 15 / 2 + 4 * largest * 0x1p-11F;
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
      for (int64_t first = 0; first < head_dim; first += kInt4KeyGroup) {
        const int64_t count = std::min<int64_t>(kInt4KeyGroup, head_dim - first);
        EXPECT_LE(ErrorOf(key, first, count, [&](int64_t i) { return head.Key(place, i); }),
                  Tolerance(key, first, count))
            << head_dim << " slot " << place << " channel " << first;
      }
      for (int64_t first = 0; first < head_dim; first += kInt4ValueGroup) {
        const int64_t count = std::min<int64_t>(kInt4ValueGroup, head_dim - first);
        EXPECT_LE(ErrorOf(value, first, count, [&](int64_t i) { return head.Value(place, i); }),
                  Tolerance(value, first, count))
            << head_dim << " slot " << place << " channel " << first;
      }
    }
  }
}

// A channel of 40 is 5 in every transformed channel, of either sign: it would take the steps of all
// groups from some 0.25 to 0.9, were it not absorbed by the minima.
TEST(Int4RowsTest, TheLargestChannelOfAKeyTakesNoRange) {
  for (const size_t channel : {0U, 1U, 37U, 63U}) {
    StoredHead head(64);
    Row row = RandomRow(64, 7);
    row.key[channel] = 0;
    const std::vector<float> others = Transformed(row.key);
    row.key[channel] = 40;
    head.Store(row.key, row.value, 3);
    const std::vector<float> key = Transformed(row.key);
    const float minimum_rounding = 8 * 0x1p-11F;
    EXPECT_LE(ErrorOf(key, 0, 64, [&](int64_t i) { return head.Key(3, i); }),
              Tolerance(others, 0, 64) / 2 + minimum_rounding)
        << channel;
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

// Attention of every table this machine runs: hand arithmetic with queries of zero, a softmax in
// double precision, and bits that do not depend on how a sequence is cut.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/formats/hadamard.h"
#include "kernels/formats/int4_rows.h"
#include "kernels/kernel_table.h"
#include "tests/kernels/check_harness.h"

namespace trireme::kernels {
namespace {

constexpr double kEpsilon = 0x1p-24;  // relative error of one float operation

// One sequence in a cache, blocks in reverse order.
class Sequence {
 public:
  Sequence(int64_t keys, std::vector<int32_t> heads_of, int64_t key_value_heads, int64_t head_dim,
           KeyValueFormat format = KeyValueFormat::kF32)
      : heads_of_(std::move(heads_of)),
        keys_(keys),
        query(static_cast<size_t>(keys) * heads_of_.size() * static_cast<size_t>(head_dim)),
        key(static_cast<size_t>(keys * key_value_heads * head_dim)),
        value(key.size()) {
    cache_ = {.format = format, .key_value_heads = key_value_heads, .head_dim = head_dim};
    const int64_t blocks = (keys + kBlockTokens - 1) / kBlockTokens;
    data_.resize(static_cast<size_t>(blocks * cache_.BlockBytes()));
    cache_.data = data_.data();
    for (int64_t i = 0; i < blocks; ++i) {
      block_table_.push_back(static_cast<int32_t>(blocks - 1 - i));
    }
  }

  void FillRandom(uint64_t seed) {
    check::Random random(seed);
    random.FillNormal(query.data(), static_cast<int64_t>(query.size()));
    random.FillNormal(key.data(), static_cast<int64_t>(key.size()));
    random.FillNormal(value.data(), static_cast<int64_t>(value.size()));
  }

  void Store(const KernelTable& table, const Execution& execution) {
    std::vector<int64_t> slots;
    for (int64_t position = 0; position < keys_; ++position) {
      const int64_t block = block_table_[static_cast<size_t>(position / kBlockTokens)];
      slots.push_back(block * kBlockTokens + position % kBlockTokens);
    }
    table.rope_and_store(execution, {.style = RopeStyle::kNone,
                                     .tokens = keys_,
                                     .query = query.data(),
                                     .query_heads = query_heads(),
                                     .key = key.data(),
                                     .value = value.data(),
                                     .cache = cache_,
                                     .slots = slots.data()});
  }

  // Rows first_position .. first_position + rows, whose queries are those of the same positions.
  std::vector<float> Attend(const KernelTable& table, const Execution& execution,
                            int64_t first_position, int64_t rows, int64_t window) const {
    const AttentionSequence sequence{
        .rows = rows, .first_position = first_position, .block_table = block_table_.data()};
    const int64_t width = query_heads() * cache_.head_dim;
    std::vector<float> output(static_cast<size_t>(rows * width));
    table.attention(execution, {.sequences = &sequence,
                                .sequence_count = 1,
                                .query = query.data() + first_position * width,
                                .query_heads = query_heads(),
                                .key_value_head_of = heads_of_.data(),
                                .scale = kScale,
                                .window = window,
                                .soft_cap = soft_cap,
                                .sinks = sinks.empty() ? nullptr : sinks.data(),
                                .cache = cache_,
                                .output = output.data()});
    return output;
  }

  struct Exact {
    double value;
    double tolerance;
  };
  Exact InDoubles(int64_t position, int64_t head, int64_t d, int64_t window) const {
    const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
    double largest = -INFINITY, largest_product = 0, largest_value = 0, sum = 0, weighted = 0;
    std::vector<double> scores;
    for (int64_t j = first; j <= position; ++j) {
      double score = 0, product = 0;
      for (int64_t i = 0; i < cache_.head_dim; ++i) {
        const double term = static_cast<double>(Query(position, head, i)) *
                            static_cast<double>(kScale) * static_cast<double>(At(key, j, head, i));
        score += term;
        product += std::fabs(term);
      }
      scores.push_back(score);
      largest = std::max(largest, score);
      largest_product = std::max(largest_product, product);
    }
    for (int64_t j = first; j <= position; ++j) {
      const double weight = std::exp(scores[static_cast<size_t>(j - first)] - largest);
      const auto v = static_cast<double>(At(value, j, head, d));
      sum += weight;
      weighted += weight * v;
      largest_value = std::max(largest_value, std::fabs(v));
    }
    // A score is a chain of head_dim steps over terms rounded once: its error enters a weight as a
    // relative error, as that of the maximum does. The exponential adds 2 ulp and the rounding of
    // its argument (below 16 here), twice where a tile is rescaled. Chains of 128 and a merge for
    // each tile give the sums. Numerator and denominator err by that each.
    const double score_error = static_cast<double>(cache_.head_dim + 1) * largest_product;
    const double weight_error = 2 * score_error + 2 * (4 + 16);
    const double sum_error = 128 + 3 * static_cast<double>(keys_ / kAttentionTileTokens + 1);
    return {weighted / sum, 2 * (weight_error + sum_error + 1) * kEpsilon * largest_value};
  }

  int64_t query_heads() const { return static_cast<int64_t>(heads_of_.size()); }

 private:
  static constexpr float kScale = 0.25F;

  float Query(int64_t position, int64_t head, int64_t d) const {
    return query[static_cast<size_t>((position * query_heads() + head) * cache_.head_dim + d)];
  }
  float At(const std::vector<float>& from, int64_t position, int64_t head, int64_t d) const {
    const int64_t key_value_head = heads_of_[static_cast<size_t>(head)];
    return from[static_cast<size_t>(
        (position * cache_.key_value_heads + key_value_head) * cache_.head_dim + d)];
  }

  std::vector<int32_t> heads_of_;
  int64_t keys_;
  KeyValueCache cache_;
  std::vector<std::byte> data_;
  std::vector<int32_t> block_table_;

 public:
  std::vector<float> query;  // [keys, query_heads, head_dim]
  std::vector<float> key;    // [keys, key_value_heads, head_dim]
  std::vector<float> value;  // [keys, key_value_heads, head_dim]
  float soft_cap = 0;
  std::vector<float> sinks;  // [query_heads] or none
};

class AttentionTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  const Execution& execution() {
    test_execution_.ReserveShared(table().shared_scratch_bytes(2048, 16, 128, 2048));
    return test_execution_.get();
  }

 private:
  check::TestExecution test_execution_{3, 64};
};

std::vector<const KernelTable*> AllTables() {
  const KernelTableList list = RunnableKernelTables();
  return {list.tables, list.tables + list.count};
}

std::string TableName(const testing::TestParamInfo<const KernelTable*>& info) {
  return info.param->name;
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionTest, testing::ValuesIn(AllTables()), TableName);

// A query of zero weighs all visible keys alike. With value j at key j the output is the mean of
// the visible positions; sums below 2^24 and the quotients below are exact.
TEST_P(AttentionTest, AQueryOfZeroGivesTheMeanOfTheVisibleValues) {
  constexpr int64_t kKeys = 301;
  Sequence sequence(kKeys, {0}, 1, 8);
  sequence.FillRandom(1);
  std::fill(sequence.query.begin(), sequence.query.end(), 0.0F);
  for (size_t i = 0; i < sequence.value.size(); ++i) {
    sequence.value[i] = static_cast<float>(i / 8);
  }
  sequence.Store(table(), execution());
  const std::vector<float> all = sequence.Attend(table(), execution(), 0, kKeys, 0);
  const std::vector<float> three = sequence.Attend(table(), execution(), 0, kKeys, 3);
  for (int64_t position = 0; position < kKeys; ++position) {
    const auto at = static_cast<size_t>(position * 8);
    ASSERT_EQ(all[at], static_cast<float>(position) / 2);
    const float mean =
        position < 2 ? static_cast<float>(position) / 2 : static_cast<float>(position - 1);
    ASSERT_EQ(three[at], mean);
  }
}

// Scores 1, 2, 3 and a sink of 0.5: the weights of specs/architectures.md 1, printed to 7 digits.
TEST_P(AttentionTest, ASinkTakesPartInTheDenominatorOnly) {
  Sequence sequence(3, {0}, 1, 8);
  for (size_t j = 0; j < 3; ++j) {
    sequence.query[j * 8] = 4;  // times the scale of 1/4
    sequence.key[j * 8] = static_cast<float>(j + 1);
    sequence.value[j * 8 + j] = 1;
  }
  sequence.sinks = {0.5F};
  sequence.Store(table(), execution());
  const std::vector<float> output = sequence.Attend(table(), execution(), 2, 1, 0);
  EXPECT_NEAR(output[0], 0.08536889F, 1e-7F);
  EXPECT_NEAR(output[1], 0.2320567F, 2e-7F);
  EXPECT_NEAR(output[2], 0.6307955F, 4e-7F);
}

// tanh in doubles; a capped score errs by 3e-7 of the cap at most, which a weight sees as a
// relative error.
TEST_P(AttentionTest, ASoftCapBendsScoresBeforeTheSoftmax) {
  constexpr float kCap = 2;
  Sequence sequence(3, {0}, 1, 8);
  double weights[3], sum = 0;
  for (size_t j = 0; j < 3; ++j) {
    sequence.query[j * 8] = 4;
    sequence.key[j * 8] = static_cast<float>(j + 1);
    sequence.value[j * 8 + j] = 1;
    weights[j] = std::exp(kCap * std::tanh(static_cast<double>(j + 1) / kCap));
    sum += weights[j];
  }
  sequence.soft_cap = kCap;
  sequence.Store(table(), execution());
  const std::vector<float> output = sequence.Attend(table(), execution(), 2, 1, 0);
  for (size_t j = 0; j < 3; ++j) {
    EXPECT_NEAR(static_cast<double>(output[j]), weights[j] / sum, 2e-6);
  }
}

TEST_P(AttentionTest, AgreesWithASoftmaxInDoubles) {
  constexpr int64_t kKeys = 420;
  Sequence sequence(kKeys, {0, 0, 0, 1, 1}, 2, 64);
  sequence.FillRandom(2);
  sequence.Store(table(), execution());
  for (const int64_t window : {0, 150}) {
    const std::vector<float> output = sequence.Attend(table(), execution(), 0, kKeys, window);
    for (const int64_t position : {0, 1, 15, 16, 127, 128, 129, 300, 419}) {
      for (int64_t head = 0; head < 5; ++head) {
        for (int64_t d = 0; d < 64; d += 7) {
          const Sequence::Exact exact = sequence.InDoubles(position, head, d, window);
          const float actual = output[static_cast<size_t>((position * 5 + head) * 64 + d)];
          ASSERT_NEAR(static_cast<double>(actual), exact.value, exact.tolerance)
              << "position " << position << " head " << head << " dim " << d;
        }
      }
    }
  }
}

TEST_P(AttentionTest, BitsDoNotDependOnTheChunksOfThePrompt) {
  constexpr int64_t kKeys = 400;
  Sequence sequence(kKeys, {0, 0, 0, 1}, 2, 24);
  sequence.FillRandom(3);
  sequence.Store(table(), execution());
  for (const int64_t window : {0, 140}) {
    const std::vector<float> whole = sequence.Attend(table(), execution(), 0, kKeys, window);
    for (const int64_t chunk : {1, 7, 100, 256}) {
      std::vector<float> pieces;
      for (int64_t first = 0; first < kKeys; first += chunk) {
        const std::vector<float> piece =
            sequence.Attend(table(), execution(), first, std::min(chunk, kKeys - first), window);
        pieces.insert(pieces.end(), piece.begin(), piece.end());
      }
      ASSERT_EQ(whole, pieces) << "chunks of " << chunk;
    }
  }
}

// Rows whose transform is made of levels, the largest of scale 1/4 in every group, lose nothing but
// roundings: the output is that of float32.
TEST_P(AttentionTest, RowsOnTheLevelsOfInt4AttendAsFloats) {
  constexpr int64_t kKeys = 150;
  for (const int64_t head_dim : {32, 64, 80, 96}) {
    Sequence plain(kKeys, {0, 0, 1}, 2, head_dim);
    Sequence narrow(kKeys, {0, 0, 1}, 2, head_dim, KeyValueFormat::kInt4);
    plain.FillRandom(5);
    check::Random random(6);
    const auto fill = [&](const Int4Code& code, std::vector<float>& row) {
      for (size_t i = 0; i < row.size(); ++i) {
        const int last = code.Levels() - 1;
        const int level = i % 16 == 5 ? last : static_cast<int>(random.Below(code.Levels()));
        row[i] = code.Level(level) * code.unit / 4;
      }
      for (size_t first = 0; first < row.size(); first += static_cast<size_t>(head_dim)) {
        ApplyHadamard(row.data() + first, head_dim);
      }
    };
    fill(kInt4Key, plain.key);
    fill(kInt4Value, plain.value);
    narrow.query = plain.query;
    narrow.key = plain.key;
    narrow.value = plain.value;
    plain.Store(table(), execution());
    narrow.Store(table(), execution());
    const std::vector<float> wanted = plain.Attend(table(), execution(), 0, kKeys, 0);
    const std::vector<float> output = narrow.Attend(table(), execution(), 0, kKeys, 0);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(output[i], wanted[i], 2e-5F) << "head_dim " << head_dim << " output " << i;
    }
  }
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  Sequence sequence(200, {0}, 1, 16);
  sequence.FillRandom(4);
  for (float& q : sequence.query) {
    q *= 1e4F;
  }
  sequence.Store(table(), execution());
  for (const float y : sequence.Attend(table(), execution(), 0, 200, 0)) {
    ASSERT_TRUE(std::isfinite(y));
  }
}

TEST_P(AttentionTest, ScratchStaysBoundedInTokensAndContext) {
  const int64_t many = table().shared_scratch_bytes(4096, 32, 128, 131072);
  EXPECT_EQ(table().shared_scratch_bytes(512, 32, 128, 131072), many);
  EXPECT_LE(many, int64_t{32} << 20);
}

}  // namespace
}  // namespace trireme::kernels

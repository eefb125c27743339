// Attention bit for bit against the reference table: all cuts of the work (rows, tiles, waves of
// tiles), uneven groups of heads, windows, all cache formats, head_dim with and without whole
// lanes. Cache slots that no row may see hold NaN, and table entries that none may use are wild.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/check_harness.h"

namespace trireme::kernels::check {
namespace {

struct SequenceShape {
  int64_t rows;
  int64_t first_position;
};

struct AttentionCase {
  std::vector<SequenceShape> sequences;
  std::vector<int32_t> heads_of;  // key_value_head_of
  int64_t key_value_heads;
  int64_t head_dim;
  KeyValueFormat format;
  int64_t window;
  float soft_cap = 0;
  std::vector<float> sinks = {};  // [query heads] or none
};

std::string Describe(const AttentionCase& shape) {
  std::string text = "attention heads " + std::to_string(shape.heads_of.size()) + "/" +
                     std::to_string(shape.key_value_heads) + " head_dim " +
                     std::to_string(shape.head_dim) +
                     " cache " + std::to_string(static_cast<int>(shape.format)) + " window " +
                     std::to_string(shape.window) + " rows@position";
  for (size_t i = 0; i < shape.sequences.size() && i < 6; ++i) {
    text += " " + std::to_string(shape.sequences[i].rows) + "@" +
            std::to_string(shape.sequences[i].first_position);
  }
  return text;
}

// Everything an attention call reads, filled through the reference table's rope_and_store.
class AttentionInput {
 public:
  AttentionInput(const KernelTable& filler, TestExecution& execution, const AttentionCase& shape,
                 uint64_t seed)
      : shape_(shape), random_(seed) {
    const int64_t query_heads = static_cast<int64_t>(shape.heads_of.size());
    args_.query_heads = query_heads;
    args_.key_value_head_of = shape.heads_of.data();
    args_.scale = 0.125F;
    args_.window = shape.window;
    args_.soft_cap = shape.soft_cap;
    args_.sinks = shape.sinks.empty() ? nullptr : shape.sinks.data();
    args_.cache = {.format = shape.format,
                   .key_value_heads = shape.key_value_heads,
                   .head_dim = shape.head_dim};
    int64_t blocks = 0;
    for (const SequenceShape& sequence : shape.sequences) {
      blocks += BlocksOf(sequence);
      rows_ += sequence.rows;
    }
    cache_ = std::make_unique<GuardedBytes>(blocks * args_.cache.BlockBytes());
    args_.cache.data = cache_->data();
    query_ = std::make_unique<Guarded<float>>(rows_ * query_heads * shape.head_dim);
    random_.FillNormal(query_->data(), query_->count());
    args_.query = query_->data();
    tables_.resize(shape.sequences.size());
    int64_t next_block = blocks - 1;  // handed out backwards
    int64_t first_row = rows_;        // the last sequence's rows come first
    for (size_t i = 0; i < shape.sequences.size(); ++i) {
      AddSequence(filler, execution, i, next_block);
      first_row -= shape.sequences[i].rows;
      sequences_[i].first_row = first_row;
    }
    args_.sequences = sequences_.data();
    args_.sequence_count = static_cast<int64_t>(sequences_.size());
  }

  const AttentionArgs& args() const { return args_; }
  int64_t rows() const { return rows_; }
  int64_t context() const { return context_; }
  int64_t output_count() const { return query_->count(); }
  std::vector<AttentionSequence>& sequences() { return sequences_; }

 private:
  static int64_t BlocksOf(const SequenceShape& sequence) {
    return (sequence.first_position + sequence.rows + kBlockTokens - 1) / kBlockTokens;
  }

  void AddSequence(const KernelTable& filler, TestExecution& execution, size_t index,
                   int64_t& next_block) {
    const SequenceShape& sequence = shape_.sequences[index];
    const int64_t keys = sequence.first_position + sequence.rows;
    std::vector<int32_t>& table = tables_[index];
    std::vector<int64_t> slots;
    for (int64_t position = 0; position < keys; ++position) {
      if (position % kBlockTokens == 0) {
        table.push_back(static_cast<int32_t>(next_block--));
      }
      slots.push_back(int64_t{table.back()} * kBlockTokens + position % kBlockTokens);
    }
    std::vector<float> key(static_cast<size_t>(keys * shape_.key_value_heads * shape_.head_dim));
    std::vector<float> value(key.size());
    random_.FillNormal(key.data(), static_cast<int64_t>(key.size()));
    random_.FillNormal(value.data(), static_cast<int64_t>(value.size()));
    filler.rope_and_store(execution.get(), {.style = RopeStyle::kNone,
                                            .tokens = keys,
                                            .key = key.data(),
                                            .value = value.data(),
                                            .cache = args_.cache,
                                            .slots = slots.data()});
    if (shape_.window > 0) {
      const int64_t hidden = sequence.first_position - shape_.window + 1;
      for (int64_t block = 0; block < hidden / kBlockTokens; ++block) {
        table[static_cast<size_t>(block)] = std::numeric_limits<int32_t>::max();
      }
    }
    sequences_.push_back({.rows = sequence.rows,
                          .first_position = sequence.first_position,
                          .block_table = table.data()});
    context_ = keys > context_ ? keys : context_;
  }

  const AttentionCase& shape_;
  Random random_;
  int64_t rows_ = 0;
  int64_t context_ = 0;
  std::unique_ptr<GuardedBytes> cache_;
  std::unique_ptr<Guarded<float>> query_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<AttentionSequence> sequences_;
  AttentionArgs args_;
};

void Reserve(const KernelTable& table, TestExecution& execution, const AttentionInput& input) {
  execution.ReserveShared(table.shared_scratch_bytes(input.rows(), input.args().query_heads,
                                                     input.args().cache.head_dim, input.context()));
}

void CheckCase(Checker& checker, const AttentionCase& shape, uint64_t seed) {
  AttentionInput input(checker.reference, checker.reference_execution, shape, seed);
  Reserve(checker.table, checker.execution, input);
  Reserve(checker.reference, checker.reference_execution, input);
  Guarded<float> output(input.output_count()), expected(input.output_count());
  AttentionArgs args = input.args();
  args.output = expected.data();
  checker.reference.attention(checker.reference_execution.get(), args);
  args.output = output.data();
  checker.table.attention(checker.execution.get(), args);
  const std::string what = Describe(shape);
  checker.ExpectSameBits(output.data(), expected.data(), output.count(), what);
  checker.Expect(output.GuardsAreIntact(), what + " guards");
  bool has_nan = false;
  for (int64_t i = 0; i < expected.count(); ++i) {
    has_nan = has_nan || expected[i] != expected[i];
  }
  checker.Expect(!has_nan, what + " reads a slot that it may not see");

  // On one thread nothing is split; the bits must not tell.
  TestExecution alone(1, 64);
  Guarded<float> single(input.output_count());
  args.output = single.data();
  checker.table.attention(alone.get(), args);
  checker.ExpectSameBits(single.data(), expected.data(), single.count(), what + ", one thread");

  // Row by row, as if decoded one after another.
  Guarded<float> rows(input.output_count());
  args.output = rows.data();
  args.sequence_count = 1;
  for (const AttentionSequence& sequence : input.sequences()) {
    for (int64_t row = 0; row < sequence.rows && sequence.rows <= 64; ++row) {
      AttentionSequence one = sequence;
      one.first_row += row;
      one.rows = 1;
      one.first_position += row;
      args.sequences = &one;
      checker.table.attention(checker.execution.get(), args);
      const int64_t width = args.query_heads * args.cache.head_dim;
      checker.ExpectSameBits(rows.data() + one.first_row * width,
                             expected.data() + one.first_row * width, width,
                             what + ", row " + std::to_string(row) + " alone");
    }
  }
}

const std::vector<int32_t> kSmolHeads = {0, 0, 0, 1, 1, 1, 2, 2, 2};

}  // namespace

void CheckAttention(Checker& checker) {
  uint64_t seed = 1;
  for (const KeyValueFormat format : kKeyValueFormats) {
    for (const int64_t head_dim : {8, 16, 24, 40, 64, 80, 96, 128, 256}) {
      CheckCase(checker, {{{33, 0}, {1, 300}, {5, 126}}, {0, 0, 0, 1, 1}, 2, head_dim, format, 0},
                ++seed);
    }
    for (const int64_t window : {1, 5, 100, 128, 200}) {
      CheckCase(checker, {{{40, 250}, {1, 400}, {3, 0}}, kSmolHeads, 3, 64, format, window},
                ++seed);
    }
    // A soft cap, sinks that count and sinks that outweigh every key.
    const std::vector<float> sinks = {0.5F, -3, 40, 0, 2, -100, 1, 7, -0.25F};
    CheckCase(checker, {{{40, 250}, {1, 400}}, kSmolHeads, 3, 64, format, 0, 4.0F}, ++seed);
    CheckCase(checker, {{{40, 250}, {1, 400}}, kSmolHeads, 3, 64, format, 30, 0, sinks}, ++seed);
    CheckCase(checker, {{{1, 1500}}, kSmolHeads, 3, 64, format, 0, 4.0F, sinks}, ++seed);
    // Few rows over long contexts: tiles are split, and beyond 64 tiles in several waves.
    CheckCase(checker, {{{1, 1500}}, kSmolHeads, 3, 64, format, 0}, ++seed);
    CheckCase(checker, {{{3, 2000}, {1, 900}, {2, 17}}, kSmolHeads, 3, 64, format, 0}, ++seed);
    CheckCase(checker, {{{4, 1200}}, {0, 0, 0, 0, 0, 1, 1}, 2, 24, format, 700}, ++seed);
    CheckCase(checker, {{{1, 8500}}, {0, 0}, 1, 16, format, 0}, ++seed);
    CheckCase(checker, {{{2, 8191}}, {0}, 1, 8, format, 0}, ++seed);
    // Every head its own key/value head, one for all heads, one that no query head uses.
    CheckCase(checker, {{{20, 120}}, {0, 1, 2, 3}, 4, 32, format, 0}, ++seed);
    CheckCase(checker, {{{13, 120}}, std::vector<int32_t>(40, 0), 1, 32, format, 0}, ++seed);
    CheckCase(checker, {{{9, 64}}, {0, 2, 2}, 3, 64, format, 0}, ++seed);
    CheckCase(checker, {{{200, 0}}, kSmolHeads, 3, 64, format, 0}, ++seed);
  }
  std::vector<SequenceShape> decodes;
  for (int64_t i = 0; i < 64; ++i) {
    decodes.push_back({1, i * 7});
  }
  CheckCase(checker, {decodes, kSmolHeads, 3, 64, KeyValueFormat::kF16, 0}, ++seed);
}

}  // namespace trireme::kernels::check

// How a model is cut over the ranks of one replica, as a value: which layers, heads, hidden columns
// and vocabulary rows each rank holds. It knows extents only, nothing of formats, files or hosts.
//
// Terms: a row-split matrix (attention output, feed-forward down) has its columns cut into at most
// 8 leaves, whatever the number of tensor ranks: unit i of n goes to leaf floor(8 i / n); a unit is
// a query head, or a group of 32 hidden columns. Tensor rank r of T holds leaves [8 r / T, 8 (r +
// 1) / T), whole subtrees of one binary tree (docs/exactness.md).
#ifndef TRIREME_TOPOLOGY_PARTITION_H_
#define TRIREME_TOPOLOGY_PARTITION_H_

#include <cstdint>
#include <vector>

namespace trireme::topology {

inline constexpr int kLeaves = 8;
inline constexpr int64_t kHiddenUnit = 32;      // hidden columns that stay together
inline constexpr int64_t kVocabularyUnit = 16;  // vocabulary rows that stay together

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool contains(int64_t index) const { return begin <= index && index < end; }
  friend bool operator==(const Range&, const Range&) = default;
};

// What partitioning needs to know of a model.
struct ModelExtents {
  int64_t layers = 0;
  int64_t query_heads = 0;
  int64_t key_value_heads = 0;  // divides query_heads
  int64_t hidden_dim = 0;
  int64_t vocabulary = 0;
};

struct Layout {
  int tensor_ranks = 1;  // inside a stage: 1, 2, 4 or 8
  int stages = 1;        // 1 .. layers
  std::vector<int64_t>
      stage_layers;  // layers of each stage; empty: as even as possible, earlier stages get more

  int ranks() const { return tensor_ranks * stages; }
};

// A run of units of a row-split matrix: query heads, or hidden columns.
struct Leaf {
  int index = 0;  // 0..7
  Range units;
};

// The part of the model that one rank holds. Rank number = stage * tensor_ranks + tensor_rank.
struct RankPart {
  int rank = 0;
  int stage = 0;
  int tensor_rank = 0;
  int tensor_ranks = 1;
  Range layers;
  Range query_heads;
  Range key_value_heads;  // those its query heads read; two ranks may hold the same one
  Range hidden;           // columns of the widest hidden layer; may be empty
  Range vocabulary;       // rows of the embedding (first stage) and output matrix (last stage)
  std::vector<Leaf> attention_leaves;  // query heads, rising
  std::vector<Leaf> hidden_leaves;  // hidden columns, rising; leaves without columns are left out
  bool first_stage = false;
  bool last_stage = false;
};

struct Partition {
  ModelExtents extents;
  Layout layout;
  std::vector<RankPart> parts;  // [layout.ranks()], by rank
};

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_PARTITION_H_

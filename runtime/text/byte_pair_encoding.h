// Merging of neighbouring symbols by rank: the heart of byte-level BPE and of SentencePiece BPE. It
// knows numbers only; what a symbol stands for is the encoder's business.
//
// Words: a "symbol" is an id (a token id, an encoder's extra id past the vocabulary, or any
// negative number for something that never merges); a "rank" is a merge's priority, lower first.
#ifndef TRIREME_RUNTIME_TEXT_BYTE_PAIR_ENCODING_H_
#define TRIREME_RUNTIME_TEXT_BYTE_PAIR_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace trireme::text {

// No rank is as high as this one.
inline constexpr int32_t kNoMerge = INT32_MAX;

struct Merge {
  int32_t rank = kNoMerge;  // kNoMerge: the pair does not merge
  int32_t result = -1;      // the symbol that the two become
};

// (left symbol, right symbol) -> merge. A text of one repeated letter asks it twice per letter, so
// it is one flat array with linear probing, at most half full.
class PairTable {
 public:
  // Room for `pairs` pairs; adding more is a mistake of the caller.
  explicit PairTable(size_t pairs);

  // `left` and `right` are at least 0, rank is below kNoMerge. A pair that is there already keeps
  // its merge: in published files that repeat a merge, the first rank counts.
  void Add(int32_t left, int32_t right, Merge merge);

  // The merge of the pair; rank kNoMerge when there is none or a symbol is negative.
  Merge Find(int32_t left, int32_t right) const {
    if ((left | right) < 0) {
      return {};
    }
    const uint64_t key = Key(left, right);
    for (size_t i = Slot(key); entries_[i].merge.rank != kNoMerge; i = (i + 1) & mask_) {
      if (entries_[i].key == key) {
        return entries_[i].merge;
      }
    }
    return {};
  }

  size_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t key = 0;
    Merge merge;  // rank kNoMerge: the slot is free
  };

  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t Slot(uint64_t key) const {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: spreads consecutive ids
    return static_cast<size_t>(key >> 32) & mask_;
  }

  std::vector<Entry> entries_;
  size_t mask_ = 0;
  size_t size_ = 0;
};

// Does the merging and keeps its scratch memory between words. One thread at a time; make one per
// call.
class SymbolMerger {
 public:
  // `pairs` must outlive the merger.
  explicit SymbolMerger(const PairTable* pairs) : pairs_(pairs) {}

  // Repeatedly merges the neighbours of lowest rank, the leftmost of equals, until none merge.
  // Time is O(n) for texts of few distinct pairs and O(n log n) at worst; memory is O(n).
  void Merge(std::vector<int32_t>* symbols);

 private:
  // Positions of pairs of one rank: those that came in ascending order, which nearly all do, in a
  // plain vector, the others in a heap. Taking the leftmost is O(1) in the first case.
  struct Bucket {
    int32_t rank;
    std::vector<uint32_t> ascending;
    size_t next = 0;
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<uint32_t>> late;

    bool empty() const { return next == ascending.size() && late.empty(); }
    void Push(uint32_t position);
    uint32_t Pop();
  };
  struct Node {
    int32_t symbol;
    uint32_t previous;
    uint32_t next;
    text::Merge merge;  // of this symbol with the next one
  };

  void MergeShort(std::vector<int32_t>* symbols);
  bool MergeInPasses(std::vector<int32_t>* symbols);
  void MergeAllOf(int32_t rank, std::vector<int32_t>* symbols);
  void MergeLong(std::vector<int32_t>* symbols);
  void FindPair(uint32_t position);
  void MergeAt(uint32_t position);
  size_t BucketOf(int32_t rank);  // its index, made when it is not there

  const PairTable* pairs_;
  std::vector<text::Merge> merges_;  // of symbol i with symbol i + 1; not MergeLong
  std::vector<Node> nodes_;
  std::vector<Bucket> buckets_;
  absl::flat_hash_map<int32_t, size_t> bucket_index_;  // by rank
  size_t last_bucket_ = 0;
  // Ranks of the buckets that are not empty, and perhaps of some that are.
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<int32_t>> ranks_;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_BYTE_PAIR_ENCODING_H_

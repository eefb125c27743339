#include "runtime/text/byte_pair_encoding.h"

#include "runtime/base/check.h"

namespace trireme::text {
namespace {

// Up to here a plain search for the lowest rank beats any bookkeeping; nearly all words are
// shorter.
constexpr size_t kShortSymbols = 32;

// A pass over all symbols costs as much as keeping book of a tenth of them.
constexpr size_t kPassSymbolsPerPair = 16;

// So few pairs of one rank are those of a text's beginning or end, as where a space is put before a
// megabyte of one word; so many times a pass is spent on them.
constexpr size_t kStrayPairs = 8;
constexpr int kStrayPassesMax = 4;

constexpr uint32_t kNoPosition = UINT32_MAX;
constexpr int32_t kMergedAway = INT32_MIN;

size_t SlotsFor(size_t pairs) {
  size_t slots = 16;
  while (slots < 2 * pairs) {
    slots *= 2;
  }
  return slots;
}

}  // namespace

PairTable::PairTable(size_t pairs) : entries_(SlotsFor(pairs)), mask_(entries_.size() - 1) {}

void PairTable::Add(int32_t left, int32_t right, Merge merge) {
  CHECK_GE(left, 0);
  CHECK_GE(right, 0);
  CHECK_LT(merge.rank, kNoMerge);
  CHECK_LT(2 * size_, entries_.size());
  const uint64_t key = Key(left, right);
  size_t slot = Slot(key);
  while (entries_[slot].merge.rank != kNoMerge) {
    if (entries_[slot].key == key) {
      return;
    }
    slot = (slot + 1) & mask_;
  }
  entries_[slot] = {key, merge};
  ++size_;
}

void SymbolMerger::Bucket::Push(uint32_t position) {
  if (next == ascending.size()) {
    ascending.clear();
    next = 0;
  }
  if (ascending.empty() || ascending.back() <= position) {
    ascending.push_back(position);
  } else {
    late.push(position);
  }
}

uint32_t SymbolMerger::Bucket::Pop() {
  const bool take_late =
      next == ascending.size() || (!late.empty() && late.top() < ascending[next]);
  if (!take_late) {
    return ascending[next++];
  }
  const uint32_t position = late.top();
  late.pop();
  return position;
}

void SymbolMerger::Merge(std::vector<int32_t>* symbols) {
  if (symbols->size() < 2) {
    return;
  }
  if (symbols->size() <= kShortSymbols) {
    MergeShort(symbols);
  } else if (!MergeInPasses(symbols)) {
    MergeLong(symbols);
  }
}

void SymbolMerger::MergeShort(std::vector<int32_t>* symbols) {
  std::vector<int32_t>& list = *symbols;
  merges_.clear();
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    merges_.push_back(pairs_->Find(list[i], list[i + 1]));
  }
  while (!merges_.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < merges_.size(); ++i) {
      if (merges_[i].rank < merges_[best].rank) {
        best = i;
      }
    }
    if (merges_[best].rank == kNoMerge) {
      return;
    }
    list[best] = merges_[best].result;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    merges_.erase(merges_.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) {
      merges_[best - 1] = pairs_->Find(list[best - 1], list[best]);
    }
    if (best < merges_.size()) {
      merges_[best] = pairs_->Find(list[best], list[best + 1]);
    }
  }
}

// As long as the lowest rank is that of many pairs: what comes of texts that repeat themselves.
// True when nothing is left to merge; else `symbols` is what merging one by one comes to on its
// way.
bool SymbolMerger::MergeInPasses(std::vector<int32_t>* symbols) {
  merges_.clear();
  for (size_t i = 0; i + 1 < symbols->size(); ++i) {
    merges_.push_back(pairs_->Find((*symbols)[i], (*symbols)[i + 1]));
  }
  int stray_passes = 0;
  while (true) {
    int32_t lowest = kNoMerge;
    size_t count = 0;
    for (const text::Merge& merge : merges_) {
      if (merge.rank < lowest) {
        lowest = merge.rank;
        count = 0;
      }
      count += merge.rank == lowest ? 1 : 0;
    }
    if (lowest == kNoMerge) {
      return true;
    }
    if (count * kPassSymbolsPerPair < symbols->size() &&
        (count > kStrayPairs || ++stray_passes > kStrayPassesMax)) {
      return false;
    }
    MergeAllOf(lowest, symbols);
  }
}

// One pass, from the left, over symbols whose lowest rank is `rank`. Before it goes on it merges
// the pairs that a merge has made when theirs is no higher: they are the lowest then, or the
// leftmost of equals, as all pairs to their left are higher and those to their right are not lower
// than `rank`.
void SymbolMerger::MergeAllOf(int32_t rank, std::vector<int32_t>* symbols) {
  std::vector<int32_t>& list = *symbols;
  const size_t count = list.size();
  size_t to = 0;  // symbols before it are written, with the merges between them
  for (size_t from = 0; from < count; ++to) {
    if (from + 1 == count || merges_[from].rank != rank) {
      list[to] = list[from];
      if (from + 1 < count) {
        merges_[to] = merges_[from];
      }
      ++from;
      continue;
    }
    list[to] = merges_[from].result;
    from += 2;
    while (true) {
      const text::Merge left = to > 0 ? pairs_->Find(list[to - 1], list[to]) : text::Merge();
      const text::Merge right = from < count ? pairs_->Find(list[to], list[from]) : text::Merge();
      if (left.rank <= rank && left.rank <= right.rank) {
        list[--to] = left.result;
      } else if (right.rank <= rank) {
        list[to] = right.result;
        ++from;
      } else {
        if (to > 0) {
          merges_[to - 1] = left;
        }
        if (from < count) {
          merges_[to] = right;
        }
        break;
      }
    }
  }
  list.resize(to);
  merges_.resize(to - 1);
}

size_t SymbolMerger::BucketOf(int32_t rank) {
  if (last_bucket_ >= buckets_.size() || buckets_[last_bucket_].rank != rank) {
    const auto [entry, is_new] = bucket_index_.try_emplace(rank, buckets_.size());
    if (is_new) {
      buckets_.emplace_back();
      buckets_.back().rank = rank;
    }
    last_bucket_ = entry->second;
  }
  return last_bucket_;
}

void SymbolMerger::FindPair(uint32_t position) {
  Node& node = nodes_[position];
  if (node.next == kNoPosition) {
    node.merge = {};
    return;
  }
  node.merge = pairs_->Find(node.symbol, nodes_[node.next].symbol);
  if (node.merge.rank == kNoMerge) {
    return;
  }
  Bucket& bucket = buckets_[BucketOf(node.merge.rank)];
  if (bucket.empty()) {
    ranks_.push(node.merge.rank);
  }
  bucket.Push(position);
}

void SymbolMerger::MergeAt(uint32_t position) {
  Node& node = nodes_[position];
  Node& right = nodes_[node.next];
  node.symbol = node.merge.result;
  right.symbol = kMergedAway;
  right.merge = {};
  node.next = right.next;
  if (node.next != kNoPosition) {
    nodes_[node.next].previous = position;
  }
  if (node.previous != kNoPosition) {
    FindPair(node.previous);
  }
  FindPair(position);
}

void SymbolMerger::MergeLong(std::vector<int32_t>* symbols) {
  CHECK_LT(symbols->size(), static_cast<size_t>(kNoPosition));
  const uint32_t count = static_cast<uint32_t>(symbols->size());
  nodes_.resize(count);
  buckets_.clear();
  bucket_index_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    nodes_[i] = {
        (*symbols)[i], i == 0 ? kNoPosition : i - 1, i + 1 == count ? kNoPosition : i + 1, {}};
  }
  for (uint32_t i = 0; i < count; ++i) {
    FindPair(i);
  }
  // A merge may make a pair of lower rank than its own, so the lowest rank is asked for each time.
  // An entry is stale when its position has another pair by now; a pair never comes back, since
  // merges only lengthen.
  int32_t rank = kNoMerge;
  size_t lowest = 0;  // the bucket of `rank`
  while (!ranks_.empty()) {
    if (ranks_.top() != rank) {
      rank = ranks_.top();
      lowest = BucketOf(rank);
    }
    if (buckets_[lowest].empty()) {
      ranks_.pop();
      continue;
    }
    const uint32_t position = buckets_[lowest].Pop();
    if (nodes_[position].merge.rank == rank) {
      MergeAt(position);
    }
  }
  symbols->clear();
  for (uint32_t i = 0; i != kNoPosition; i = nodes_[i].next) {
    symbols->push_back(nodes_[i].symbol);
  }
}

}  // namespace trireme::text

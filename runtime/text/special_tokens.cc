#include "runtime/text/special_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/container/btree_map.h"
#include "runtime/base/check.h"

namespace trireme::text {
namespace {

struct Candidate {
  uint32_t end;
  int32_t token_index;
};

}  // namespace

SpecialTokenFinder::SpecialTokenFinder(std::vector<SpecialToken> tokens)
    : tokens_(std::move(tokens)), next_shorter_(tokens_.size(), -1), nodes_(1) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    CHECK(!tokens_[i].text.empty());
    Insert(i);
  }
  Link();
}

void SpecialTokenFinder::Insert(size_t token_index) {
  int32_t node = 0;
  for (const char character : tokens_[token_index].text) {
    const uint8_t byte = static_cast<uint8_t>(character);
    const int32_t fresh = static_cast<int32_t>(nodes_.size());
    const auto [edge, is_new] = edges_.try_emplace(Edge(node, byte), fresh);
    if (is_new) {
      nodes_.emplace_back();
      if (node == 0) {
        root_edges_[byte] = fresh;
      }
    }
    node = edge->second;
  }
  nodes_[static_cast<size_t>(node)].longest = static_cast<int32_t>(token_index);
}

// Breadth first, so that the links of all shorter strings are there before they are followed. A
// node's number is above its parent's, but not above those of all shorter strings, so the order
// comes from the texts.
void SpecialTokenFinder::Link() {
  struct Child {
    int32_t parent;
    uint8_t byte;
    int32_t node;
  };
  std::vector<std::vector<Child>> children(nodes_.size());
  for (const auto& [edge, node] : edges_) {
    const int32_t parent = static_cast<int32_t>(edge >> 8);
    children[static_cast<size_t>(parent)].push_back(
        {parent, static_cast<uint8_t>(edge & 0xff), node});
  }
  std::vector<int32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    for (const Child& child : children[static_cast<size_t>(order[i])]) {
      Node& node = nodes_[static_cast<size_t>(child.node)];
      node.fail =
          child.parent == 0 ? 0 : Step(nodes_[static_cast<size_t>(child.parent)].fail, child.byte);
      const int32_t shorter = nodes_[static_cast<size_t>(node.fail)].longest;
      if (node.longest >= 0) {
        next_shorter_[static_cast<size_t>(node.longest)] = shorter;
      } else {
        node.longest = shorter;
      }
      order.push_back(child.node);
    }
  }
}

int32_t SpecialTokenFinder::Step(int32_t node, uint8_t byte) const {
  while (node != 0) {
    const auto edge = edges_.find(Edge(node, byte));
    if (edge != edges_.end()) {
      return edge->second;
    }
    node = nodes_[static_cast<size_t>(node)].fail;
  }
  return root_edges_[byte];
}

std::vector<SpecialTokenMatch> SpecialTokenFinder::Find(
    absl::string_view text, absl::FunctionRef<bool(const SpecialTokenMatch&)> allowed) const {
  CHECK_LT(text.size(), size_t{UINT32_MAX});
  if (tokens_.empty()) {
    return {};
  }
  // By length, longest first. Each end begins with the longest token that ends there; a candidate
  // that cannot be taken goes on as the next shorter token of the same end.
  absl::btree_map<size_t, std::vector<Candidate>, std::greater<size_t>> candidates;
  const auto add = [this, &candidates](uint32_t end, int32_t token_index) {
    if (token_index >= 0) {
      const size_t bytes = tokens_[static_cast<size_t>(token_index)].text.size();
      candidates[bytes].push_back({end, token_index});
    }
  };
  int32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Step(node, static_cast<uint8_t>(text[i]));
    if (node != 0) {
      add(static_cast<uint32_t>(i + 1), nodes_[static_cast<size_t>(node)].longest);
    }
  }
  std::vector<SpecialTokenMatch> matches;
  if (candidates.empty()) {
    return matches;
  }
  std::vector<bool> taken(text.size(), false);
  while (!candidates.empty()) {
    const size_t bytes = candidates.begin()->first;
    std::vector<Candidate> list = std::move(candidates.begin()->second);
    candidates.erase(candidates.begin());
    const auto before = [](const Candidate& a, const Candidate& b) { return a.end < b.end; };
    if (!std::is_sorted(list.begin(), list.end(), before)) {
      std::sort(list.begin(), list.end(), before);
    }
    for (const Candidate& candidate : list) {
      const size_t begin = candidate.end - bytes;
      const size_t index = static_cast<size_t>(candidate.token_index);
      const SpecialTokenMatch match = {begin, candidate.end, tokens_[index].id};
      // What is taken is at least as long, so an overlap covers one end of this candidate.
      if (taken[candidate.end - 1]) {
        continue;
      }
      if (taken[begin] || !allowed(match)) {
        add(candidate.end, next_shorter_[index]);
        continue;
      }
      std::fill(taken.begin() + static_cast<std::ptrdiff_t>(begin),
                taken.begin() + static_cast<std::ptrdiff_t>(candidate.end), true);
      matches.push_back(match);
    }
  }
  const auto before = [](const SpecialTokenMatch& a, const SpecialTokenMatch& b) {
    return a.begin < b.begin;
  };
  if (!std::is_sorted(matches.begin(), matches.end(), before)) {
    std::sort(matches.begin(), matches.end(), before);
  }
  return matches;
}

}  // namespace trireme::text

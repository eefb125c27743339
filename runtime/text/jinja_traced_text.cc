#include "runtime/text/jinja_traced_text.h"

#include <algorithm>

namespace trireme::text::jinja {

std::vector<TracedText::Run> TracedText::Runs() const {
  std::vector<Run> runs;
  if (bytes_.empty()) {
    return runs;
  }
  runs.reserve(boundaries_.size() + 1);
  runs.push_back({0, bytes_.size(), first_origin_});
  for (const Boundary& boundary : boundaries_) {
    runs.back().end = boundary.begin;
    runs.push_back({boundary.begin, bytes_.size(), boundary.origin});
  }
  return runs;
}

Origin TracedText::WeakestOrigin() const {
  if (bytes_.empty() || (boundaries_.empty() && first_origin_ == Origin::kTrusted)) {
    return Origin::kTrusted;
  }
  return Origin::kUntrusted;
}

void TracedText::Append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) {
    return;
  }
  if (bytes_.empty()) {
    first_origin_ = origin;
  } else if (origin != (boundaries_.empty() ? first_origin_ : boundaries_.back().origin)) {
    boundaries_.push_back({bytes_.size(), origin});
  }
  bytes_.append(bytes);
}

void TracedText::Append(const TracedText& other) { AppendSlice(other, 0, other.size()); }

void TracedText::AppendSlice(const TracedText& other, size_t begin, size_t end) {
  if (begin >= end) {
    return;
  }
  const std::string_view all = other.bytes_;
  // The first boundary that begins after `begin`; the run before it holds `begin`.
  auto next = std::upper_bound(
      other.boundaries_.begin(), other.boundaries_.end(), begin,
      [](size_t offset, const Boundary& boundary) { return offset < boundary.begin; });
  Origin origin = next == other.boundaries_.begin() ? other.first_origin_ : (next - 1)->origin;
  while (next != other.boundaries_.end() && next->begin < end) {
    Append(all.substr(begin, next->begin - begin), origin);
    begin = next->begin;
    origin = next->origin;
    ++next;
  }
  Append(all.substr(begin, end - begin), origin);
}

TracedText TracedText::Slice(size_t begin, size_t end) const {
  TracedText slice;
  slice.Reserve(end - begin);
  slice.AppendSlice(*this, begin, end);
  return slice;
}

}  // namespace trireme::text::jinja

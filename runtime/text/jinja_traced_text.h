// TracedText: UTF-8 bytes that know where each of them came from, so that a rendered prompt can
// tell the template's own text from what a user wrote. Every string of the template interpreter is
// one. A run is a stretch of bytes of one origin; neighbours of equal origin are one run. Not
// thread-safe for writing; const use from several threads is fine.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_TRACED_TEXT_H_
#define TRIREME_RUNTIME_TEXT_JINJA_TRACED_TEXT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::text::jinja {

// kTrusted: the template's literal text, special token variables, numbers. kUntrusted: messages,
// tools, caller's variables.
enum class Origin : uint8_t { kTrusted, kUntrusted };

class TracedText {
 public:
  struct Run {
    size_t begin;
    size_t end;
    Origin origin;
  };

  TracedText() = default;
  TracedText(std::string bytes, Origin origin) : bytes_(std::move(bytes)), first_origin_(origin) {}

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Bytes of memory that a copy takes: many short runs cost more than their text.
  size_t footprint() const { return bytes_.size() + boundaries_.size() * sizeof(Boundary); }

  // Bytes of memory that appending `bytes` takes: when there is no room, all of the new place,
  // since the old one lives until its content has moved.
  size_t GrowthBytes(size_t bytes) const {
    const size_t wanted = bytes_.size() + bytes;
    return wanted <= bytes_.capacity() ? bytes : std::max(wanted, 2 * bytes_.capacity());
  }

  // The runs in order; they cover the text without gaps. Empty for an empty text.
  std::vector<Run> Runs() const;
  // kTrusted only if every byte is.
  Origin WeakestOrigin() const;

  void Reserve(size_t bytes) { bytes_.reserve(bytes); }
  void Append(std::string_view bytes, Origin origin);
  void Append(const TracedText& other);
  // Appends bytes [begin, end) of `other`. Requires begin <= end <= other.size().
  void AppendSlice(const TracedText& other, size_t begin, size_t end);
  // Bytes [begin, end). Requires begin <= end <= size().
  TracedText Slice(size_t begin, size_t end) const;

 private:
  struct Boundary {
    size_t begin;
    Origin origin;
  };

  std::string bytes_;
  // Origin of the first run; boundaries_ holds the begin of each further one, so a text of one run
  // owns no vector.
  Origin first_origin_ = Origin::kTrusted;
  std::vector<Boundary> boundaries_;
};

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_TRACED_TEXT_H_

// Where the reading of a regular expression stands: shared by the readers of its parts.
#ifndef TRIREME_RUNTIME_TEXT_PATTERN_CURSOR_H_
#define TRIREME_RUNTIME_TEXT_PATTERN_CURSOR_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/text/utf8.h"

namespace trireme::text {

// Groups in groups, and classes in classes.
inline constexpr int kPatternDepthMax = 64;

class PatternCursor {
 public:
  // `pattern` is valid UTF-8 and outlives the cursor.
  explicit PatternCursor(absl::string_view pattern) : pattern_(pattern) {}

  bool AtEnd() const { return position_ >= pattern_.size(); }
  // Not at the end.
  char Peek() const { return pattern_[position_]; }
  absl::string_view Rest() const { return pattern_.substr(position_); }
  void Skip(size_t bytes) { position_ += bytes; }
  // True when `text` stands here, which is then behind.
  bool Take(absl::string_view text) {
    const bool found = absl::StartsWith(Rest(), text);
    position_ += found ? text.size() : 0;
    return found;
  }
  // InvalidArgument at the end.
  absl::StatusOr<char32_t> TakeCharacter() {
    if (AtEnd()) {
      return Error("the expression ends in the middle");
    }
    const Utf8Unit unit = FirstUtf8Unit(Rest());
    position_ += unit.bytes;
    return unit.code_point;
  }
  // InvalidArgument with the place.
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s at byte %d of the regular expression \"%s\"", what, position_,
                        std::string(pattern_.substr(0, 200))));
  }

 private:
  const absl::string_view pattern_;
  size_t position_ = 0;
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_PATTERN_CURSOR_H_

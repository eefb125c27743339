// Puts text together from parts, std::string_view among them: Debian's abseil has a string_view
// type of its own, and the template interpreter works on std::string_view throughout.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_STRINGS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_STRINGS_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace trireme::text::jinja {

inline absl::string_view ToAbseil(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view FromAbseil(absl::string_view text) { return {text.data(), text.size()}; }

template <typename Part>
decltype(auto) AsPart(const Part& part) {
  if constexpr (std::is_same_v<Part, std::string_view>) {
    return ToAbseil(part);
  } else {
    return (part);
  }
}

// The parts one after the other; numbers in decimal.
template <typename... Parts>
std::string Joined(const Parts&... parts) {
  return absl::StrCat(AsPart(parts)...);
}

template <typename... Parts>
void AppendJoined(std::string& out, const Parts&... parts) {
  absl::StrAppend(&out, AsPart(parts)...);
}

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_STRINGS_H_

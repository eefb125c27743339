// One value as text of a wanted width, sign and precision: what "%5.2f" and "{:>5.2f}" have in
// common.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_CONVERSION_H_
#define TRIREME_RUNTIME_TEXT_JINJA_CONVERSION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

// What a conversion asks for, in either syntax.
struct Conversion {
  std::string fill = " ";
  char align = 0;   // '<', '>', '^' or '='; 0 for the type's own
  char sign = '-';  // '+', ' ' or '-'
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;  // ',' or '_'
  std::optional<int64_t> precision;
  char type = 0;
};

// Types d, x, X, o, b; digits and padding count as trusted. Errors: steps used up, by the width
// too.
absl::StatusOr<TracedText> FormatInteger(Runtime& runtime, Integer value, const Conversion& how);
// Types e, E, f, F, g, G, % and 0 for the shortest digits.
absl::StatusOr<TracedText> FormatFloat(Runtime& runtime, double value, const Conversion& how);
// A precision cuts the text; `default_align` holds when the conversion names none.
absl::StatusOr<TracedText> FormatText(Runtime& runtime, const TracedText& text,
                                      const Conversion& how, char default_align);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_CONVERSION_H_

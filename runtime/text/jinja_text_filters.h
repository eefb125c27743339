// Filters that work on text. Those that only cut, change case or put text together keep the
// origins.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_TEXT_FILTERS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_TEXT_FILTERS_H_

#include "absl/types/span.h"
#include "runtime/text/jinja_filters.h"

namespace trireme::text::jinja {

absl::Span<const FilterEntry> TextFilters();

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_TEXT_FILTERS_H_

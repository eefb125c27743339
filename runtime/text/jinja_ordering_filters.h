// Filters that compare items with each other: sort, dictsort, groupby, unique, min, max.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_ORDERING_FILTERS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_ORDERING_FILTERS_H_

#include "absl/types/span.h"
#include "runtime/text/jinja_filters.h"

namespace trireme::text::jinja {

absl::Span<const FilterEntry> OrderingFilters();

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_ORDERING_FILTERS_H_

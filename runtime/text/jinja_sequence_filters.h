// Filters that work on lists, mappings and whatever else can be iterated.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_SEQUENCE_FILTERS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_SEQUENCE_FILTERS_H_

#include "absl/types/span.h"
#include "runtime/text/jinja_filters.h"

namespace trireme::text::jinja {

absl::Span<const FilterEntry> SequenceFilters();

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_SEQUENCE_FILTERS_H_

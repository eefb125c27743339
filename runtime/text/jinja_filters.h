// The filters of templates: what may stand after `|`. Text filters are in jinja_text_filters, those
// of lists and mappings in jinja_sequence_filters; here are the rest and the way to find them all.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_FILTERS_H_
#define TRIREME_RUNTIME_TEXT_JINJA_FILTERS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

using FilterFunction = absl::StatusOr<Value> (*)(Runtime& runtime, const Value& value,
                                                 const Arguments& arguments);

struct FilterEntry {
  std::string_view name;
  FilterFunction function;
};

// Null when there is no filter of that name.
FilterFunction FindFilter(std::string_view name);
// Errors: no filter of that name, and those of the filter.
absl::StatusOr<Value> ApplyFilter(Runtime& runtime, std::string_view name, const Value& value,
                                  const Arguments& arguments);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_FILTERS_H_

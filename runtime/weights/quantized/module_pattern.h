// A rule of a quantisation config that says which modules it speaks of: a regular expression, as
// Python's re.match takes it (from the start of the name, not to its end).
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MODULE_PATTERN_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MODULE_PATTERN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::weights {

// Immutable; threads may use it at any time.
class ModulePattern {
 public:
  // InvalidArgument when it is no regular expression, or a very long one.
  static absl::StatusOr<ModulePattern> Compile(const std::string& expression);

  // False also where the search takes more steps than any sound rule needs.
  bool Matches(absl::string_view module) const;

 private:
  explicit ModulePattern(std::shared_ptr<void> code) : code_(std::move(code)) {}

  std::shared_ptr<void> code_;  // pcre2_code; shared since it never changes
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_MODULE_PATTERN_H_

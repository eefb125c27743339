// Collects everything that is wrong with a request, by proto path, so that a client sees all of it
// at once.
#ifndef TRIREME_RUNTIME_SERVE_VIOLATIONS_H_
#define TRIREME_RUNTIME_SERVE_VIOLATIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {

class Violations {
 public:
  // `description` has the value found and the value wanted.
  void Invalid(absl::string_view field, std::string description,
               absl::string_view reason = kReasonBadParameter);

  // A field that is set and not supported; refused, never ignored.
  void Unsupported(absl::string_view field);

  // OK when there was none. INVALID_ARGUMENT when anything is invalid, with the reason of the first
  // one; otherwise UNIMPLEMENTED, FIELD_NOT_SUPPORTED. Both carry every violation of their kind.
  absl::Status ToStatus() const;

 private:
  std::vector<FieldViolation> invalid_;
  absl::string_view reason_;
  std::vector<FieldViolation> unsupported_;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_VIOLATIONS_H_

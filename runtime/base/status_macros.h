// Early return on errors: RETURN_IF_ERROR for a Status, ASSIGN_OR_RETURN for a StatusOr.
// For expected failures only (files, network, arguments); an impossible state is a CHECK (check.h).
#ifndef TRIREME_RUNTIME_BASE_STATUS_MACROS_H_
#define TRIREME_RUNTIME_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define TRIREME_CONCAT_INNER(a, b) a##b
#define TRIREME_CONCAT(a, b) TRIREME_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression` is a status that is not OK.
#define RETURN_IF_ERROR(expression)                 \
  do {                                              \
    absl::Status status_macro_value = (expression); \
    if (!status_macro_value.ok()) {                 \
      return status_macro_value;                    \
    }                                               \
  } while (false)

// Declares or assigns `target` from the value of a StatusOr, or returns its status.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_INNER(TRIREME_CONCAT(status_or_macro_value_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_INNER(variable, target, expression) \
  auto variable = (expression);                              \
  if (!variable.ok()) {                                      \
    return std::move(variable).status();                     \
  }                                                          \
  target = std::move(variable).value()

#endif  // TRIREME_RUNTIME_BASE_STATUS_MACROS_H_

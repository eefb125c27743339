#include "runtime/serve/violations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trireme::serve {
namespace {

// A hostile request may break a rule a million times; the first ones tell enough.
constexpr size_t kViolationsMax = 64;
constexpr size_t kInMessageMax = 8;

std::string Join(const std::vector<FieldViolation>& violations) {
  std::string text;
  const size_t count = std::min(violations.size(), kInMessageMax);
  for (size_t index = 0; index < count; ++index) {
    absl::StrAppend(&text, index == 0 ? "" : "; ", violations[index].field, ": ",
                    violations[index].description);
  }
  if (violations.size() > count) {
    absl::StrAppend(&text, "; and more");
  }
  return text;
}

absl::Status WithFields(absl::Status status, const std::vector<FieldViolation>& violations) {
  for (const FieldViolation& violation : violations) {
    status = WithField(std::move(status), violation.field, violation.description);
  }
  return status;
}

}  // namespace

void Violations::Invalid(absl::string_view field, std::string description,
                         absl::string_view reason) {
  if (invalid_.empty()) {
    reason_ = reason;
  }
  if (invalid_.size() < kViolationsMax) {
    invalid_.push_back({std::string(field), std::move(description)});
  }
}

void Violations::Unsupported(absl::string_view field) {
  if (unsupported_.size() < kViolationsMax) {
    unsupported_.push_back({std::string(field), "is not supported by this server; leave it unset"});
  }
}

absl::Status Violations::ToStatus() const {
  if (!invalid_.empty()) {
    return WithFields(WithReason(absl::InvalidArgumentError(Join(invalid_)), reason_), invalid_);
  }
  if (!unsupported_.empty()) {
    return WithFields(
        WithReason(absl::UnimplementedError(Join(unsupported_)), kReasonFieldNotSupported),
        unsupported_);
  }
  return absl::OkStatus();
}

}  // namespace trireme::serve

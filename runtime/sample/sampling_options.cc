#include "runtime/sample/sampling_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/base/error_reason.h"

namespace trireme::sample {
namespace {

struct RangeCheck {
  absl::string_view field;
  bool good;
  double value;
  absl::string_view wanted;
};

}  // namespace

absl::Status ValidateSamplingOptions(const SamplingOptions& options) {
  // Comparisons are written so that NaN fails them.
  const RangeCheck checks[] = {
      {"sampling.temperature", options.temperature >= 0 && options.temperature <= 2,
       options.temperature, "0 (greedy) to 2"},
      {"sampling.top_k", options.top_k >= 0, static_cast<double>(options.top_k),
       "at least 1, or 0 for off"},
      {"sampling.top_p", options.top_p > 0 && options.top_p <= 1, options.top_p,
       "above 0 and at most 1"},
      {"sampling.min_p", options.min_p >= 0 && options.min_p <= 1, options.min_p, "0 to 1"},
  };
  absl::Status status;
  for (const RangeCheck& check : checks) {
    if (check.good) {
      continue;
    }
    const std::string description =
        absl::StrFormat("%.9g is out of range; wanted: %s", check.value, check.wanted);
    if (status.ok()) {
      status = WithReason(absl::InvalidArgumentError(absl::StrCat(check.field, ": ", description)),
                          kReasonBadParameter);
    }
    status = WithField(status, check.field, description);
  }
  return status;
}

}  // namespace trireme::sample

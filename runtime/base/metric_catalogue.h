// The list of all metrics: the one place where a metric gets its name, kind, labels and meaning.
// docs/metrics.md is this table for readers; a test keeps the two equal. A name once published is
// not changed.
#ifndef TRIREME_RUNTIME_BASE_METRIC_CATALOGUE_H_
#define TRIREME_RUNTIME_BASE_METRIC_CATALOGUE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

struct MetricEntry {
  absl::string_view name;  // ends in its unit; counters in _total
  MetricKind kind;
  std::vector<absl::string_view> labels;
  absl::string_view processes;  // "replica", "balancer", "supervisor", or several
  absl::string_view meaning;
};

absl::Span<const MetricEntry> MetricCatalogue();

// Null when there is none of this name.
const MetricEntry* FindMetric(absl::string_view name);

absl::string_view MetricKindName(MetricKind kind);

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_METRIC_CATALOGUE_H_

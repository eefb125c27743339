// Metrics: the counters, gauges and histograms of one process, as Prometheus reads them.
//
// metric_catalogue.h lists every metric there is, with unit, labels and meaning; docs/metrics.md is
// that table, and a test compares the two. Label values come from small fixed sets, never from
// clients. Nothing is counted in a step: steps are summed up when somebody reads (OnScrape).
#ifndef TRIREME_RUNTIME_BASE_METRICS_H_
#define TRIREME_RUNTIME_BASE_METRICS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"

namespace prometheus {
class Exposer;
}

namespace trireme {

using MetricLabels = std::map<std::string, std::string>;

// A function that is called before each reading, until this is destroyed: the destructor waits for
// a reading in progress. It may outlive the metrics.
class ScrapeHook {
 public:
  ScrapeHook() = default;
  explicit ScrapeHook(std::function<void()> remove) : remove_(std::move(remove)) {}
  ~ScrapeHook() {
    if (remove_ != nullptr) {
      remove_();
    }
  }
  ScrapeHook(ScrapeHook&& other) noexcept : remove_(std::exchange(other.remove_, nullptr)) {}
  ScrapeHook(const ScrapeHook&) = delete;
  ScrapeHook& operator=(const ScrapeHook&) = delete;

 private:
  std::function<void()> remove_;
};

// Any thread. What it returns lives as long as it does.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // `name` is in the catalogue as this kind, and `labels` are exactly its labels: anything else is
  // a programmer's mistake. Looking one up costs a lock: keep what is counted often.
  prometheus::Counter& Counter(absl::string_view name, const MetricLabels& labels = {});
  prometheus::Gauge& Gauge(absl::string_view name, const MetricLabels& labels = {});
  prometheus::Histogram& Histogram(absl::string_view name, const MetricLabels& labels = {});

  // `refresh` runs on the reader's thread and sets gauges from what it sees; it must not block.
  [[nodiscard]] ScrapeHook OnScrape(std::function<void()> refresh);

  // Everything in Prometheus' text format.
  std::string Text();

  // Serves Text over HTTP at /metrics of HOST:PORT (port 0: a free one) for the rest of its life;
  // returns the port. Once. FailedPrecondition when the address cannot be taken.
  absl::StatusOr<int> Listen(const std::string& address);

 private:
  class Source;
  struct Families;

  const std::shared_ptr<prometheus::Registry> registry_;
  const std::unique_ptr<Families> families_;
  const std::shared_ptr<Source> source_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_METRICS_H_

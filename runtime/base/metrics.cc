#include "runtime/base/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/family.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/metric_catalogue.h"

namespace trireme {
namespace {

// From a millisecond to a quarter of an hour, three a decade.
const prometheus::Histogram::BucketBoundaries& SecondsBuckets() {
  static const auto* const buckets = new prometheus::Histogram::BucketBoundaries{
      .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  return *buckets;
}

const MetricEntry& EntryOf(absl::string_view name, MetricKind kind, const MetricLabels& labels) {
  const MetricEntry* const entry = FindMetric(name);
  CHECK(entry != nullptr);
  CHECK(entry->kind == kind);
  CHECK_EQ(labels.size(), entry->labels.size());
  for (const absl::string_view label : entry->labels) {
    CHECK(labels.count(std::string(label)) == 1);
  }
  return *entry;
}

}  // namespace

struct Metrics::Families {
  Mutex mutex;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters ABSL_GUARDED_BY(mutex);
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges ABSL_GUARDED_BY(mutex);
  std::map<std::string, prometheus::Family<prometheus::Histogram>*> histograms
      ABSL_GUARDED_BY(mutex);
};

// What is read: the registry, after everybody had a chance to refresh.
class Metrics::Source : public prometheus::Collectable {
 public:
  explicit Source(std::shared_ptr<prometheus::Registry> registry)
      : registry_(std::move(registry)) {}

  int64_t Add(std::function<void()> refresh) {
    MutexLock lock(&mutex_);
    refreshes_[++last_id_] = std::move(refresh);
    return last_id_;
  }

  void Remove(int64_t id) {
    MutexLock lock(&mutex_);
    refreshes_.erase(id);
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    MutexLock lock(&mutex_);
    for (const auto& [id, refresh] : refreshes_) {
      refresh();
    }
    return registry_->Collect();
  }

 private:
  const std::shared_ptr<prometheus::Registry> registry_;
  mutable Mutex mutex_;
  std::map<int64_t, std::function<void()>> refreshes_ ABSL_GUARDED_BY(mutex_);
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

namespace {

template <typename Metric, typename Builder>
prometheus::Family<Metric>& FamilyOf(std::map<std::string, prometheus::Family<Metric>*>& families,
                                     Builder builder, const MetricEntry& entry,
                                     prometheus::Registry& registry) {
  prometheus::Family<Metric>*& family = families[std::string(entry.name)];
  if (family == nullptr) {
    family =
        &builder.Name(std::string(entry.name)).Help(std::string(entry.meaning)).Register(registry);
  }
  return *family;
}

}  // namespace

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      families_(std::make_unique<Families>()),
      source_(std::make_shared<Source>(registry_)) {}

Metrics::~Metrics() = default;

prometheus::Counter& Metrics::Counter(absl::string_view name, const MetricLabels& labels) {
  const MetricEntry& entry = EntryOf(name, MetricKind::kCounter, labels);
  MutexLock lock(&families_->mutex);
  return FamilyOf(families_->counters, prometheus::BuildCounter(), entry, *registry_).Add(labels);
}

prometheus::Gauge& Metrics::Gauge(absl::string_view name, const MetricLabels& labels) {
  const MetricEntry& entry = EntryOf(name, MetricKind::kGauge, labels);
  MutexLock lock(&families_->mutex);
  return FamilyOf(families_->gauges, prometheus::BuildGauge(), entry, *registry_).Add(labels);
}

prometheus::Histogram& Metrics::Histogram(absl::string_view name, const MetricLabels& labels) {
  const MetricEntry& entry = EntryOf(name, MetricKind::kHistogram, labels);
  MutexLock lock(&families_->mutex);
  return FamilyOf(families_->histograms, prometheus::BuildHistogram(), entry, *registry_)
      .Add(labels, SecondsBuckets());
}

ScrapeHook Metrics::OnScrape(std::function<void()> refresh) {
  return ScrapeHook(
      [source = source_, id = source_->Add(std::move(refresh))] { source->Remove(id); });
}

std::string Metrics::Text() { return prometheus::TextSerializer().Serialize(source_->Collect()); }

absl::StatusOr<int> Metrics::Listen(const std::string& address) {
  CHECK(exposer_ == nullptr);
  // The library throws when it cannot listen.
  try {
    exposer_ = std::make_unique<prometheus::Exposer>(address, /*num_threads=*/1);
  } catch (const std::exception& error) {
    return absl::FailedPreconditionError(
        absl::StrCat("metrics cannot be served at ", address, " (", error.what(),
                     "): give a HOST:PORT of this machine that is free, or port 0 for any"));
  }
  exposer_->RegisterCollectable(source_);
  return exposer_->GetListeningPorts().front();
}

}  // namespace trireme

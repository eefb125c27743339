// What a supervisor counts about its fleet.
#ifndef TRIREME_LAUNCHER_FLEET_METRICS_H_
#define TRIREME_LAUNCHER_FLEET_METRICS_H_

#include <cstdint>
#include <map>
#include <string>

#include "launcher/fleet_view.h"
#include "runtime/base/metrics.h"

namespace trireme::launcher {

// One thread.
class FleetMetrics {
 public:
  // `metrics` outlives it.
  explicit FleetMetrics(Metrics* metrics) : metrics_(*metrics) {}

  // Gauges become what `view` shows; counters grow by what came since the last view.
  void Set(const FleetView& view);

 private:
  Metrics& metrics_;
  std::map<std::string, int64_t> restarts_;  // of each child, in the last view
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_METRICS_H_

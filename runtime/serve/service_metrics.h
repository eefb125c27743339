// The gauges of a service that are read off its door and its controller when somebody looks: phase,
// queue, batch, KV blocks, steps.
#ifndef TRIREME_RUNTIME_SERVE_SERVICE_METRICS_H_
#define TRIREME_RUNTIME_SERVE_SERVICE_METRICS_H_

#include <cstdint>
#include <functional>

#include "runtime/base/metrics.h"
#include "runtime/engine/controller.h"
#include "runtime/serve/door.h"
#include "runtime/serve/replica_facade.h"

namespace trireme::serve {

class ServiceMetrics {
 public:
  // `metrics` may be null, and so may `status`; the pointers outlive this.
  ServiceMetrics(Metrics* metrics, Door* door, std::function<StatusSnapshot()> status);

 private:
  // On the reader's thread, one at a time.
  void Refresh();
  void ReadLoad(const engine::Load& load);
  void ReadSteps(const engine::Load& load);
  void ReadExperts();
  void Set(const char* name, int64_t value);
  void Advance(const char* name, int64_t value, int64_t* last);

  Metrics* const metrics_;
  Door& door_;
  const std::function<StatusSnapshot()> status_;
  int64_t steps_ = 0;
  int64_t preemptions_ = 0;
  const ScrapeHook hook_;  // last: gone first
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_SERVICE_METRICS_H_

#include "launcher/fleet_metrics.h"

#include "absl/strings/str_cat.h"
#include "launcher/supervisor.h"

namespace trireme::launcher {
namespace {

constexpr ChildState kStates[] = {
    ChildState::kSweeping, ChildState::kWaiting, ChildState::kStarting, ChildState::kServing,
    ChildState::kDraining, ChildState::kEnding,  ChildState::kStopped,  ChildState::kFailed};

}  // namespace

void FleetMetrics::Set(const FleetView& view) {
  for (const ChildView& child : view.children) {
    for (const ChildState state : kStates) {
      const std::string name(NameOf(state));
      metrics_.Gauge("trireme_child_state", {{"child", child.name}, {"state", name}})
          .Set(child.state == name ? 1 : 0);
    }
    metrics_.Gauge("trireme_child_epoch", {{"child", child.name}})
        .Set(static_cast<double>(child.epoch));
    int64_t& seen = restarts_[child.name];
    if (child.restarts > seen) {
      metrics_
          .Counter("trireme_restarts_total",
                   {{"child", child.name}, {"code", absl::StrCat(child.exit_code.value_or(0))}})
          .Increment(static_cast<double>(child.restarts - seen));
      seen = child.restarts;
    }
  }
}

}  // namespace trireme::launcher

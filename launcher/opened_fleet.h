// What plan, check and up begin with: a topology file, the model it names, and what they mean
// together.
#ifndef TRIREME_LAUNCHER_OPENED_FLEET_H_
#define TRIREME_LAUNCHER_OPENED_FLEET_H_

#include <memory>
#include <string>

#include "launcher/exit_codes.h"
#include "launcher/replica_plan.h"
#include "runtime/weights/checkpoint.h"
#include "topology/cluster.h"

namespace trireme::launcher {

struct OpenedFleet {
  topology::ClusterFile file;
  std::shared_ptr<const weights::Checkpoint> checkpoint;
  ClusterPlan plan;  // without problems
};

// Fills in `fleet` and returns kOk, or prints what is wrong (with the file, the model, or with the
// two together) and returns the code for it.
ExitCode OpenFleet(const std::string& path, const PlanQuestion& question, OpenedFleet* fleet);

// Prints the plan's misfits; kDoesNotFit when there are any.
ExitCode ReportMisfits(const ClusterPlan& plan);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_OPENED_FLEET_H_

// FleetRunner: the shell of a fleet. Starts processes, reads their logs and load reports, tells the
// Supervisor what happened and carries out what it decides; answers operators on the admin socket.
#ifndef TRIREME_LAUNCHER_FLEET_RUNNER_H_
#define TRIREME_LAUNCHER_FLEET_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/exit_codes.h"
#include "launcher/fleet_plan.h"
#include "launcher/fleet_view.h"
#include "launcher/run_folder.h"
#include "topology/cluster.h"

namespace trireme::launcher {

struct FleetOptions {
  topology::ClusterFile file;
  std::vector<ReplicaCut> cuts;  // [replicas], or empty
  std::string program;           // path of this program, the same on all nodes
  std::string topology_path;     // of `file`, for balancers to read again
  std::string fault_folder;      // of the replicas' --fault-injection; empty: none
  // Called several times a second on the running thread, for a screen; may be null.
  std::function<void(const FleetView& view)> on_view;
};

// Blocks the signals that the fleet takes, in this thread and those it starts later; call it first
// of all.
void BlockFleetSignals();

// Runs the fleet to its end, on the calling thread, which must be the process's first: children
// die with it. Drains on SIGTERM, SIGINT, SIGHUP and SIGUSR1; a second one ends now, and so does
// SIGQUIT at once; a third one kills.
ExitCode RunFleet(const FleetOptions& options, RunFolder* folder);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_RUNNER_H_

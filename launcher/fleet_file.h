// The topology file as the launcher's subcommands take it: read, checked, and with the default
// model's path and the environment's remote agent (OMPI_MCA_plm_rsh_agent) in place.
#ifndef TRIREME_LAUNCHER_FLEET_FILE_H_
#define TRIREME_LAUNCHER_FLEET_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "launcher/exit_codes.h"
#include "topology/cluster.h"

namespace trireme::launcher {

// NotFound or PermissionDenied for a file that cannot be read, InvalidArgument as
// topology::ParseClusterFile: many lines, one for each mistake.
absl::StatusOr<topology::ClusterFile> ReadFleetFile(const std::string& path);

// Prints the error of ReadFleetFile line by line; the code says missing, not permitted, or wrong
// configuration.
ExitCode FailFleetFile(const absl::Status& status);

// TRIREME_MODEL, or where launcher/default_model.sh keeps the default model.
std::string DefaultModelPath();

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_FILE_H_

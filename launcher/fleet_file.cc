#include "launcher/fleet_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/command_line.h"
#include "runtime/base/status_macros.h"
#include "topology/cluster_file.h"

namespace trireme::launcher {

std::string DefaultModelPath() {
  const char* const named = std::getenv("TRIREME_MODEL");
  if (named != nullptr && *named != '\0') {
    return named;
  }
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string folder = cache != nullptr && *cache != '\0'
                                 ? std::string(cache)
                                 : absl::StrCat(home == nullptr ? "" : home, "/.cache");
  return folder + "/trireme/SmolLM2-135M-Instruct.Q4_1.gguf";
}

namespace {

// A file of ten thousand replicas is smaller, and what has no end is no topology file.
constexpr size_t kFileBytesMax = size_t{4} << 20;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kFileBytesMax + 1, '\0');
  if (!file || !(file.read(text.data(), static_cast<std::streamsize>(text.size())) || file.eof())) {
    const std::string message =
        absl::StrCat(path, ": cannot read the topology file: ", std::strerror(errno));
    return errno == EACCES ? absl::PermissionDeniedError(message) : absl::NotFoundError(message);
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kFileBytesMax) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: more than %d bytes; a topology file has a few thousand", path, kFileBytesMax));
  }
  return text;
}

// mpirun takes its agent from there, and whoever asks hosts beside it must come in the same way.
std::string AgentOfEnvironment() {
  const char* const agent = std::getenv("OMPI_MCA_plm_rsh_agent");
  return agent != nullptr && *agent == '/' ? agent : "";
}

}  // namespace

absl::StatusOr<topology::ClusterFile> ReadFleetFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  ASSIGN_OR_RETURN(topology::ClusterFile cluster, topology::ParseClusterFile(text, path));
  if (cluster.model.path == topology::kDefaultModelPath) {
    cluster.model.path = DefaultModelPath();
  }
  for (topology::ClusterReplica& replica : cluster.replicas) {
    topology::ReplicaDefaults& settings = replica.settings;
    if (settings.remote_agent.empty() && settings.launcher == topology::LauncherKind::kMpirun) {
      settings.remote_agent = AgentOfEnvironment();
    }
  }
  return cluster;
}

ExitCode FailFleetFile(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) {
    return Fail(ExitCodeOfFile(status), status);
  }
  absl::FPrintF(stderr, "%s\n", status.message());
  return ExitCode::kBadConfiguration;
}

}  // namespace trireme::launcher

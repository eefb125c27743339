#include "launcher/slurm_command.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace trireme::launcher {

std::vector<std::string> SrunWords(const topology::ClusterFile& file,
                                   const topology::ClusterReplica& replica,
                                   const ReplicaStart& start) {
  const std::vector<std::string> hosts = HostsOfRanks(file, replica);
  std::vector<std::string> words = {
      "env", absl::StrCat(kRunVariable, "=", RunTag(start.run_folder, replica.name, start.epoch)),
      "srun", "--mpi=pmix",
      // Without it a rank's death gives the others no notice.
      "--kill-on-bad-exit=1",
      // Several replicas share one allocation.
      "--overlap", "--overcommit", "--cpu-bind=none", absl::StrCat("--ntasks=", hosts.size()),
      // One entry a rank, in order.
      "--distribution=arbitrary", absl::StrCat("--nodelist=", absl::StrJoin(hosts, ",")),
      "--export=ALL", "--input=none", "--unbuffered"};
  const std::vector<std::string> serve = ServeWords(file, replica, start);
  words.insert(words.end(), serve.begin(), serve.end());
  return words;
}

}  // namespace trireme::launcher

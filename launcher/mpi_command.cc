#include "launcher/mpi_command.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace trireme::launcher {
namespace {

void AddParameter(const std::string& name, const std::string& value,
                  std::vector<std::string>* words) {
  words->insert(words->end(), {"--mca", name, value});
}

}  // namespace

std::vector<std::string> MpirunWords(const topology::ClusterFile& file,
                                     const topology::ClusterReplica& replica,
                                     const ReplicaStart& start) {
  const topology::ReplicaDefaults& settings = replica.settings;
  const std::vector<std::string> hosts = HostsOfRanks(file, replica);
  std::vector<std::string> words = {
      "env", absl::StrCat(kRunVariable, "=", RunTag(start.run_folder, replica.name, start.epoch)),
      "mpirun", "-n", absl::StrCat(hosts.size()),
      // One entry a rank, in order: any assignment of stages to nodes can be said.
      "--host", absl::StrJoin(hosts, ","), "--map-by", "seq",
      // Ranks bind themselves (--rank-cores); slots are what the file says.
      "--bind-to", "none", "--oversubscribe"};
  if (start.is_root) {
    words.push_back("--allow-run-as-root");
  }
  if (!std::all_of(hosts.begin(), hosts.end(), IsLoopbackHost)) {
    AddParameter("orte_keep_fqdn_hostnames", "1", &words);
    if (!settings.remote_agent.empty()) {
      AddParameter("plm_rsh_agent", settings.remote_agent, &words);
    }
  }
  if (!settings.interfaces.control.empty()) {
    AddParameter("oob_tcp_if_include", settings.interfaces.control, &words);
  }
  if (!settings.interfaces.fabric.empty()) {
    AddParameter("pml", "ob1", &words);
    AddParameter("btl", "self,vader,tcp", &words);
    AddParameter("btl_tcp_if_include", absl::StrJoin(settings.interfaces.fabric, ","), &words);
  }
  // A cut link is noticed by mpirun and its daemons after 5 s instead of minutes.
  AddParameter("oob_tcp_keepalive_time", "2", &words);
  AddParameter("oob_tcp_keepalive_intvl", "1", &words);
  AddParameter("oob_tcp_keepalive_probes", "3", &words);
  // Seconds between SIGCONT, SIGTERM and SIGKILL after a rank's death: rank 0 needs one to end its
  // streams, and mpirun waits out more even when all ranks have left.
  AddParameter("odls_base_sigkill_timeout", "1", &words);
  words.insert(words.end(), {"-x", std::string(kRunVariable)});
  const std::vector<std::string> serve = ServeWords(file, replica, start);
  words.insert(words.end(), serve.begin(), serve.end());
  return words;
}

}  // namespace trireme::launcher

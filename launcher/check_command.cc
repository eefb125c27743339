#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/host_check.h"
#include "launcher/host_report.h"
#include "launcher/opened_fleet.h"
#include "launcher/process_limits.h"
#include "launcher/remote_command.h"
#include "launcher/replica_command.h"
#include "launcher/replica_plan.h"
#include "runtime/weights/checkpoint.h"

ABSL_FLAG(bool, host_report, false,
          "print what this host has, as a line of JSON: how a check looks at other hosts");
ABSL_FLAG(std::string, addresses, "",
          "with --host-report: addresses that must be free, as in --addresses "
          "127.0.0.1:8080,127.0.0.1:9000");
ABSL_DECLARE_FLAG(std::string, model);

namespace trireme::launcher {
namespace {

constexpr absl::Duration kHostLimit = absl::Seconds(30);  // to reach a host and look at it

// One host of the file: what runs there, and how it is reached.
struct CheckedHost {
  std::string host;
  std::string agent;
  HostNeeds needs;
  std::vector<std::string> addresses;  // to listen at
};

struct HostAnswer {
  absl::StatusOr<HostReport> report;
  absl::Duration clock_error;
};

std::string ProgramPath() {
  char path[4096] = {};
  return ::readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 ? path : "trireme";
}

// Hosts by name; this one stands under "localhost", and is there for the balancers in any case.
std::map<std::string, CheckedHost> HostsOf(const topology::ClusterFile& file,
                                           const ClusterPlan& plan) {
  std::map<std::string, CheckedHost> hosts;
  const auto at = [&hosts](const std::string& host) -> CheckedHost& {
    CheckedHost& found = hosts[IsThisHost(host) ? "localhost" : host];
    found.host = host;
    return found;
  };
  for (size_t i = 0; i < file.replicas.size(); ++i) {
    const topology::ClusterReplica& replica = file.replicas[i];
    for (const topology::ClusterStage& stage : replica.stages) {
      CheckedHost& host = at(file.nodes[stage.node_index].host);
      host.agent = replica.settings.remote_agent;
      host.needs.threads += stage.ranks * ThreadsOf(stage);
      host.needs.all_threads += stage.ranks * ThreadsOfProcess(ThreadsOf(stage));
      host.needs.cores.insert(host.needs.cores.end(), stage.cores.begin(), stage.cores.end());
      host.needs.shared_memory_bytes += SharedMemoryOfStage(stage.ranks);
      host.needs.open_files =
          std::max(host.needs.open_files, OpenFilesOfRank(plan.replicas[i].options.layout.ranks()));
    }
    for (const PlannedRank& rank : plan.replicas[i].ranks) {
      at(file.nodes[rank.node_index].host).needs.memory_bytes += rank.bytes.total();
    }
    at(file.nodes[replica.stages[0].node_index].host).addresses.push_back(replica.engine_listen);
  }
  CheckedHost& here = at("localhost");
  if (file.balancer.has_value()) {
    here.addresses.insert(here.addresses.end(), file.balancer->listen.begin(),
                          file.balancer->listen.end());
    here.needs.open_files = std::max(here.needs.open_files, OpenFilesOfRank(1));
    here.needs.all_threads +=
        static_cast<int64_t>(file.balancer->listen.size()) * ThreadsOfProcess(0);
  }
  if (!file.observe.metrics.empty()) {
    here.addresses.push_back(file.observe.metrics);
  }
  return hosts;
}

HostAnswer Ask(const CheckedHost& host, const std::string& program, const std::string& model) {
  if (IsThisHost(host.host)) {
    return {LookAtThisHost(model, host.addresses), absl::ZeroDuration()};
  }
  const absl::Time begin = absl::Now();
  const absl::StatusOr<CommandOutput> output =
      RunToItsEnd(WordsOnHost({program, "check", "--host-report", "--model", model, "--addresses",
                               absl::StrJoin(host.addresses, ",")},
                              host.host, host.agent),
                  kHostLimit);
  const absl::Time end = absl::Now();
  if (!output.ok()) {
    return {output.status(), absl::ZeroDuration()};
  }
  const size_t brace = output->output.find('{');
  absl::StatusOr<HostReport> report =
      DecodeHostReport(brace == std::string::npos ? "" : output->output.substr(brace));
  if (!report.ok()) {
    return {absl::UnavailableError(absl::StrFormat(
                "exit code %d: %s", output->exit_code,
                absl::StripAsciiWhitespace(absl::string_view(output->errors).substr(0, 500)))),
            absl::ZeroDuration()};
  }
  // The host looked at its clock between the two; what lies within that is no error.
  const absl::Time clock = absl::FromUnixNanos(report->clock_unix_ns);
  const absl::Duration error = clock > end     ? clock - end
                               : clock < begin ? clock - begin
                                               : absl::ZeroDuration();
  return {std::move(report), error};
}

void Print(const std::string& host, const Finding& finding) {
  absl::PrintF("%-16s %-7s %s\n%-24s fix: %s\n", host, finding.is_error ? "ERROR" : "warning",
               finding.text, "", finding.fix);
}

// The findings of all hosts, told; the code is that of the first error.
ExitCode Judge(std::map<std::string, CheckedHost>* hosts,
               const std::map<std::string, HostAnswer>& answers, const HostNeeds& expected) {
  ExitCode code = ExitCode::kOk;
  const auto note = [&code](const std::string& host, const Finding& finding) {
    Print(host, finding);
    if (finding.is_error && code == ExitCode::kOk) {
      code = finding.code;
    }
  };
  for (auto& [name, host] : *hosts) {
    const HostAnswer& answer = answers.at(name);
    if (!answer.report.ok()) {
      note(name, {.code = ExitCode::kPeerLost,
                  .text = absl::StrCat("cannot be looked at: ", answer.report.status().message()),
                  .fix = "see that the host answers to its name, that ssh (or the agent) enters "
                         "without a question, and that trireme is at the same path there"});
      continue;
    }
    const HostReport& report = *answer.report;
    host.needs.version = expected.version;
    host.needs.model_path = expected.model_path;
    host.needs.model_fingerprint = expected.model_fingerprint;
    host.needs.model_host = expected.model_host;
    const std::vector<Finding> findings = JudgeHost(host.needs, report, answer.clock_error);
    for (const Finding& finding : findings) {
      note(name, finding);
    }
    if (findings.empty()) {
      absl::PrintF(
          "%-16s good    %d cores, %.1f MiB available, model %016x\n", name, report.cores.size(),
          static_cast<double>(report.memory_available_bytes) / (1 << 20), report.model_fingerprint);
    }
  }
  return code;
}

ExitCode CheckHosts(const topology::ClusterFile& file, const ClusterPlan& plan,
                    const weights::Checkpoint& checkpoint) {
  std::map<std::string, CheckedHost> hosts = HostsOf(file, plan);
  const std::string program = ProgramPath();
  std::map<std::string, HostAnswer> answers;
  std::vector<std::thread> threads;
  for (const auto& [name, host] : hosts) {
    HostAnswer& answer = answers[name];  // made before any thread starts to write
    threads.emplace_back(
        [&answer, &host = host, &program, &file] { answer = Ask(host, program, file.model.path); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const HostReport& here = *answers.at("localhost").report;
  return Judge(&hosts, answers,
               {.version = here.version,
                .model_fingerprint = checkpoint.FingerprintValue(),
                .model_host = here.host,
                .model_path = file.model.path});
}

ExitCode RunCheck(const std::vector<std::string>& words) {
  if (absl::GetFlag(FLAGS_host_report)) {
    const std::vector<std::string> addresses =
        absl::StrSplit(absl::GetFlag(FLAGS_addresses), ',', absl::SkipEmpty());
    absl::PrintF("%s\n", EncodeHostReport(LookAtThisHost(absl::GetFlag(FLAGS_model), addresses)));
    return ExitCode::kOk;
  }
  if (words.empty()) {
    return Fail(ExitCode::kUsage, absl::InvalidArgumentError(
                                      "name a topology file, as in trireme check cluster.yaml"));
  }
  OpenedFleet fleet;
  const ExitCode opened = OpenFleet(words[0], {.want_speed = false}, &fleet);
  if (opened != ExitCode::kOk) {
    return opened;
  }
  const ExitCode fit = ReportMisfits(fleet.plan);
  const ExitCode code = CheckHosts(fleet.file, fleet.plan, *fleet.checkpoint);
  return code == ExitCode::kOk ? fit : code;
}

}  // namespace

Subcommand CheckSubcommand() {
  return {.name = "check",
          .summary = "Looks at the hosts of a topology file: what would keep it from starting",
          .synopsis = "FILE | --host-report --model FILE [--addresses HOST:PORT,...]",
          .example = "trireme check deploy/topologies/laptop.yaml",
          .flags = {"host_report", "model", "addresses"},
          .words_max = 1,
          .run = RunCheck};
}

}  // namespace trireme::launcher

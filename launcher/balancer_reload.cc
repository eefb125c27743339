#include "launcher/balancer_reload.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/fleet_file.h"
#include "launcher/replica_command.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"

namespace trireme::launcher {
namespace {

// Reports come each half second, and after three seconds without one a replica counts as lost.
constexpr absl::Duration kStaleMin = absl::Milliseconds(500);
constexpr absl::Duration kStaleMax = absl::Seconds(3);

std::string TextOf(double value) { return absl::StrCat(value); }
std::string TextOf(int value) { return absl::StrCat(value); }
std::string TextOf(int64_t value) { return absl::StrCat(value); }
std::string TextOf(absl::Duration value) { return absl::FormatDuration(value); }

template <typename Value>
void Take(const char* key, const Value& wanted, Value* in_force,
          std::vector<std::string>* changes) {
  if (wanted != *in_force) {
    changes->push_back(absl::StrCat(key, ": ", TextOf(*in_force), " -> ", TextOf(wanted)));
    *in_force = wanted;
  }
}

std::string NamesOf(const std::vector<balance::ReplicaAddress>& replicas) {
  std::vector<std::string> names;
  for (const balance::ReplicaAddress& replica : replicas) {
    names.push_back(absl::StrCat(replica.name, "=", replica.endpoint));
  }
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ",");
}

}  // namespace

absl::StatusOr<BalancerChange> BalancerChangeOf(const topology::ClusterFile& file,
                                                const BalancerFixture& fixture,
                                                const balance::BalancerOptions& in_force) {
  if (!file.balancer.has_value()) {
    return absl::InvalidArgumentError(
        "balancer: the file has none any more; put it back, or stop this balancer");
  }
  const topology::ClusterBalancer& balancer = *file.balancer;
  std::vector<balance::ReplicaAddress> replicas;
  for (const int index : balancer.replica_indices) {
    const topology::ClusterReplica& replica = file.replicas[index];
    replicas.push_back({replica.name, EngineAddress(file, replica)});
  }
  if (NamesOf(replicas) != NamesOf(fixture.replicas)) {
    return absl::FailedPreconditionError(absl::StrCat("balancer.replicas: ", NamesOf(replicas),
                                                      " need a restart of this balancer; ",
                                                      "it has ", NamesOf(fixture.replicas)));
  }
  if (balancer.resume_grace != fixture.resume_grace) {
    return absl::FailedPreconditionError(absl::StrCat(
        "balancer.resume_grace: ", absl::FormatDuration(balancer.resume_grace),
        " needs a restart of this balancer; it has ", absl::FormatDuration(fixture.resume_grace)));
  }
  if (balancer.policy.stale < kStaleMin || balancer.policy.stale > kStaleMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "balancer.policy.stale: ", absl::FormatDuration(balancer.policy.stale), "; it must be ",
        absl::FormatDuration(kStaleMin), " to ", absl::FormatDuration(kStaleMax)));
  }
  BalancerChange change{.options = in_force, .changes = {}};
  balance::BalancerOptions& options = change.options;
  std::vector<std::string>* const changes = &change.changes;
  Take("balancer.policy.bounded_load", balancer.policy.bounded_load, &options.pick.bounded_load,
       changes);
  Take("balancer.policy.explore", balancer.policy.explore, &options.pick.explore, changes);
  Take("balancer.policy.stale", balancer.policy.stale, &options.health.stale_after, changes);
  Take("balancer.retry.budget", balancer.retry.budget, &options.retry.share, changes);
  Take("balancer.retry.attempts", balancer.retry.attempts, &options.retry.retries_per_request,
       changes);
  Take("balancer.retry.resumes", balancer.retry.resumes, &options.retry.resumes_per_request,
       changes);
  Take("balancer.limits.queue", balancer.limits.queue, &options.admission.queued_requests_max,
       changes);
  return change;
}

BalancerReload::BalancerReload(std::string path, BalancerFixture fixture,
                               balance::BalancerOptions in_force, Apply apply)
    : path_(std::move(path)),
      fixture_(std::move(fixture)),
      apply_(std::move(apply)),
      in_force_(std::move(in_force)) {}

absl::StatusOr<BalancerReload::Outcome> BalancerReload::TryReload(bool dry_run) {
  ASSIGN_OR_RETURN(const topology::ClusterFile file, ReadFleetFile(path_));
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(BalancerChange change, BalancerChangeOf(file, fixture_, in_force_));
  if (!dry_run && !change.changes.empty()) {
    apply_(change.options);
    in_force_ = std::move(change.options);
    ++version_;
  }
  return Outcome{.changes = std::move(change.changes), .version = version_};
}

absl::StatusOr<BalancerReload::Outcome> BalancerReload::Reload(bool dry_run) {
  absl::StatusOr<Outcome> outcome = TryReload(dry_run);
  if (!outcome.ok()) {
    Log(LogLevel::kWarning, absl::StrCat("reload refused, the settings stay as they are file=",
                                         path_, " reason=\"", outcome.status().message(), "\""));
  } else {
    Log(LogLevel::kInfo, absl::StrCat(dry_run ? "reload tried" : "reloaded", " file=", path_,
                                      " version=", outcome->version, " changes=\"",
                                      absl::StrJoin(outcome->changes, "; "), "\""));
  }
  return outcome;
}

}  // namespace trireme::launcher

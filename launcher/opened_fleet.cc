#include "launcher/opened_fleet.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/command_line.h"
#include "launcher/fleet_file.h"
#include "topology/file_problem.h"

namespace trireme::launcher {

ExitCode OpenFleet(const std::string& path, const PlanQuestion& question, OpenedFleet* fleet) {
  absl::StatusOr<topology::ClusterFile> file = ReadFleetFile(path);
  if (!file.ok()) {
    return FailFleetFile(file.status());
  }
  auto checkpoint = weights::Checkpoint::Open(file->model.path);
  if (absl::IsNotFound(checkpoint.status()) && file->model.path == DefaultModelPath()) {
    return Fail(ExitCode::kMissingFile,
                absl::NotFoundError(absl::StrCat(checkpoint.status().message(),
                                                 "; launcher/default_model.sh fetches it")));
  }
  if (!checkpoint.ok()) {
    return Fail(ExitCodeOfFile(checkpoint.status()), checkpoint.status());
  }
  absl::StatusOr<ClusterPlan> plan = PlanCluster(*file, **checkpoint, question);
  if (!plan.ok()) {
    return Fail(ExitCodeOfReplica(plan.status()), plan.status());
  }
  if (!plan->problems.empty()) {
    return FailFleetFile(
        absl::InvalidArgumentError(topology::DescribeProblems(path, plan->problems)));
  }
  *fleet = {
      .file = *std::move(file), .checkpoint = *std::move(checkpoint), .plan = *std::move(plan)};
  return ExitCode::kOk;
}

ExitCode ReportMisfits(const ClusterPlan& plan) {
  for (const std::string& misfit : plan.misfits) {
    PrintError(absl::StrCat("does not fit: ", misfit));
  }
  return plan.misfits.empty() ? ExitCode::kOk : ExitCode::kDoesNotFit;
}

}  // namespace trireme::launcher

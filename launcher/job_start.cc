#include "launcher/job_start.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "launcher/exit_codes.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/message.h"
#include "runtime/comm/rank_place.h"

namespace trireme::launcher {
namespace {

// Until every rank has opened the model file, which may lie on a slow network.
constexpr absl::Duration kOpenLimit = absl::Seconds(60);

constexpr int kOpenTag = 78;  // apart from the tags of comm/groups and of the control link
constexpr int64_t kReportBytesMax = int64_t{1} << 16;

std::unique_ptr<comm::Communicator> Everybody(comm::MpiWorld& world) {
  std::vector<int> members(static_cast<size_t>(world.size()));
  std::iota(members.begin(), members.end(), 0);
  return world.MakeGroup(std::move(members), kOpenTag);
}

// The first failure of any rank, the same on all of them.
absl::Status FirstFailure(comm::Communicator& everybody, const absl::Status& mine) {
  const int32_t code = static_cast<int32_t>(mine.code());
  std::vector<int32_t> codes(static_cast<size_t>(everybody.size()));
  RETURN_IF_ERROR(everybody.AllGather(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&code), sizeof(code)),
      absl::MakeSpan(reinterpret_cast<std::byte*>(codes.data()), codes.size() * sizeof(code))));
  const std::string text = everybody.rank() == 0
                               ? std::string(mine.message())
                               : absl::StrFormat("rank=%d host=%s: %s", everybody.rank(),
                                                 comm::LocalPlace("").host, mine.message());
  ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      comm::GatherMessages(everybody, text.substr(0, kReportBytesMax), kReportBytesMax));
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] != 0) {
      return absl::Status(static_cast<absl::StatusCode>(codes[rank]), texts[rank]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

StartDeadline::StartDeadline(std::string phase, absl::Duration limit)
    : thread_([this, phase = std::move(phase), limit] {
        if (!over_.WaitForNotificationWithTimeout(limit)) {
          Log(LogLevel::kError,
              absl::StrCat("start phase=", phase, " is not over after ",
                           absl::FormatDuration(limit),
                           ": a rank is stopped or missing, or hosts cannot reach each other"));
          ::_exit(static_cast<int>(ExitCode::kStalled));
        }
      }) {}

void StartDeadline::Met() { over_.Notify(); }

StartDeadline::~StartDeadline() {
  Met();
  thread_.join();
}

absl::StatusOr<std::unique_ptr<comm::MpiWorld>> JoinJob(absl::Duration limit) {
  const StartDeadline deadline("launch", limit);
  ASSIGN_OR_RETURN(std::unique_ptr<comm::MpiWorld> world, comm::MpiWorld::Create());
  SetLogContext(absl::StrCat("rank=", world->rank()));
  return world;
}

absl::StatusOr<std::unique_ptr<weights::Checkpoint>> OpenOnEveryRank(comm::MpiWorld& world,
                                                                     const std::string& path) {
  const StartDeadline deadline("open", kOpenLimit);
  auto checkpoint = weights::Checkpoint::Open(path);
  RETURN_IF_ERROR(FirstFailure(*Everybody(world), checkpoint.status()));
  return checkpoint;
}

absl::Status AgreeOnEveryRank(comm::MpiWorld& world, const std::vector<comm::Fact>& facts) {
  const StartDeadline deadline("agree", kOpenLimit);
  const std::unique_ptr<comm::Communicator> everybody = Everybody(world);
  ASSIGN_OR_RETURN(const std::vector<comm::RankPlace> places,
                   comm::GatherPlaces(*everybody, comm::LocalPlace("")));
  return comm::CheckAgreement(*everybody, places, facts);
}

absl::StatusOr<std::unique_ptr<engine::ProcessReplica>> StartInJob(
    comm::MpiWorld& world, const weights::Checkpoint& checkpoint,
    const engine::ReplicaOptions& options, absl::Duration connect_limit,
    const std::function<void()>& on_connected) {
  StartDeadline deadline("connect", connect_limit);
  return engine::ProcessReplica::Start(world, checkpoint, options, [&deadline, &on_connected] {
    deadline.Met();
    if (on_connected) {
      on_connected();
    }
  });
}

}  // namespace trireme::launcher

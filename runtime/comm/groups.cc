#include "runtime/comm/groups.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/message.h"
#include "runtime/comm/self_communicator.h"
#include "runtime/comm/shm_communicator.h"
#include "runtime/comm/tcp_communicator.h"
#include "runtime/comm/thread_communicator.h"

namespace trireme::comm {
namespace {

// Tags of the groups within the MPI world; every pair of ranks shares at most one tensor group.
constexpr int kStartTag = 1;
constexpr int kTensorTag = 2;
constexpr int kPipelineTag = 3;

constexpr int64_t kNameBytesMax = 256;

std::vector<int> RanksFrom(int first, int count) {
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

void SetNeighbours(RankGroups& groups) {
  const int stage = groups.layout.StageOf(groups.rank);
  if (stage > 0) {
    groups.previous_rank = groups.rank - groups.layout.tensor_ranks;
  }
  if (stage + 1 < groups.layout.stages) {
    groups.next_rank = groups.rank + groups.layout.tensor_ranks;
  }
}

absl::StatusOr<std::unique_ptr<Communicator>> MakeTensorGroup(
    MpiWorld& world, const ProcessGroupOptions& options, const std::vector<RankPlace>& places) {
  const Layout& layout = options.layout;
  if (layout.tensor_ranks == 1) {
    return MakeSelfCommunicator();
  }
  const int first = layout.RankOf(layout.StageOf(world.rank()), 0);
  std::unique_ptr<Communicator> over_mpi =
      world.MakeGroup(RanksFrom(first, layout.tensor_ranks), kTensorTag);
  if (!AreOnOneHost(absl::MakeConstSpan(places).subspan(
          static_cast<size_t>(first), static_cast<size_t>(layout.tensor_ranks)))) {
    return over_mpi;
  }
  std::string name = over_mpi->rank() == 0 ? MakeShmName() : std::string();
  RETURN_IF_ERROR(BroadcastMessage(*over_mpi, 0, kNameBytesMax, name));
  return MakeShmCommunicator({.name = name,
                              .rank = over_mpi->rank(),
                              .size = over_mpi->size(),
                              .attach_timeout = options.timeout});
}

}  // namespace

absl::Status CheckLayout(const Layout& layout, std::optional<int> world_size) {
  if (!IsReduceSize(layout.tensor_ranks)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d tensor ranks: wanted 1, 2, 4 or 8", layout.tensor_ranks));
  }
  if (layout.stages < 1 || layout.stages > kTcpRanksMax / layout.tensor_ranks) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d stages of %d tensor ranks: wanted at least 1 stage and at most %d ranks", layout.stages,
        layout.tensor_ranks, kTcpRanksMax));
  }
  if (world_size.has_value() && *world_size != layout.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d processes were started for %d tensor ranks x %d stages: start %d",
                        *world_size, layout.tensor_ranks, layout.stages, layout.ranks()));
  }
  return absl::OkStatus();
}

void RankGroups::Abort(const absl::Status& reason) const {
  control->Abort(reason);
  tensor->Abort(reason);
  pipeline->Abort(reason);
}

bool RankGroups::IsWaiting() const {
  return control->IsWaiting() || tensor->IsWaiting() || pipeline->IsWaiting();
}

absl::StatusOr<std::vector<RankGroups>> MakeThreadGroups(const Layout& layout) {
  RETURN_IF_ERROR(CheckLayout(layout));
  ASSIGN_OR_RETURN(auto control, MakeThreadCommunicators(layout.ranks()));
  ASSIGN_OR_RETURN(auto pipeline, MakeThreadCommunicators(layout.ranks()));
  std::vector<RankGroups> all(static_cast<size_t>(layout.ranks()));
  for (int stage = 0; stage < layout.stages; ++stage) {
    ASSIGN_OR_RETURN(auto tensor, MakeThreadCommunicators(layout.tensor_ranks));
    for (int index = 0; index < layout.tensor_ranks; ++index) {
      const int rank = layout.RankOf(stage, index);
      RankGroups& groups = all[static_cast<size_t>(rank)];
      groups.layout = layout;
      groups.rank = rank;
      groups.control = std::move(control[static_cast<size_t>(rank)]);
      groups.tensor = std::move(tensor[static_cast<size_t>(index)]);
      groups.pipeline = std::move(pipeline[static_cast<size_t>(rank)]);
      SetNeighbours(groups);
    }
  }
  return all;
}

absl::StatusOr<RankGroups> MakeProcessGroups(MpiWorld& world, const ProcessGroupOptions& options) {
  RETURN_IF_ERROR(CheckLayout(options.layout, world.size()));
  RankGroups groups;
  groups.layout = options.layout;
  groups.rank = world.rank();
  const std::unique_ptr<Communicator> start =
      world.MakeGroup(RanksFrom(0, world.size()), kStartTag);
  ASSIGN_OR_RETURN(groups.places, GatherPlaces(*start, LocalPlace(options.host)));
  const TcpOptions tcp = {
      .places = groups.places, .interface = options.interface, .connect_timeout = options.timeout};
  ASSIGN_OR_RETURN(groups.control, MakeTcpCommunicator(*start, tcp));
  ASSIGN_OR_RETURN(groups.tensor, MakeTensorGroup(world, options, groups.places));
  if (options.pipeline == PipelineTransport::kMpi) {
    groups.pipeline = world.MakeGroup(RanksFrom(0, world.size()), kPipelineTag);
  } else {
    ASSIGN_OR_RETURN(groups.pipeline, MakeTcpCommunicator(*start, tcp));
  }
  SetNeighbours(groups);
  return groups;
}

}  // namespace trireme::comm

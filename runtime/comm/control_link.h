// ControlLink: plain TCP connections between rank 0 and every other rank of a replica, apart from
// MPI and from the launcher, over which ranks notice within milliseconds that one of them is gone,
// within 3 s that one is stopped or cut off, and within the stall time that one is stuck.
//
// A thread of its own sends a heartbeat every 250 ms with the last finished step and reads those of
// the others (control_monitor.h decides). Rank 0 watches all ranks; the others watch rank 0, so no
// rank outlives its controller. For ranks that are processes; threads of one process need none.
#ifndef TRIREME_RUNTIME_COMM_CONTROL_LINK_H_
#define TRIREME_RUNTIME_COMM_CONTROL_LINK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/control_message.h"
#include "runtime/comm/control_monitor.h"
#include "runtime/comm/rank_place.h"

namespace trireme::comm {

struct ControlLinkOptions {
  std::vector<RankPlace> places;  // [ranks], as RankGroups has them
  std::string interface;          // network interface between hosts; "" takes any that answers
  MonitorOptions monitor;
  absl::Duration connect_timeout = absl::Seconds(30);
  Clock* clock = SteadyClock();

  // Asked on the link's thread every 100 ms; must not block.
  std::function<Progress()> progress;

  // What goes to the peers with each heartbeat, at most kControlReportBytesMax bytes, and what came
  // from one, unchecked: figures that may be old. Both on the link's thread; must not block. Null:
  // none.
  std::function<std::string()> report;
  std::function<void(int rank, absl::string_view report)> on_report;

  // Called once at most, on the link's thread, for the first loss; must not block, nor end the
  // link. It aborts the groups and tells whoever ends the process (docs/errors.md has the codes).
  std::function<void(const PeerLost&)> on_lost;
};

class ControlLink {
 public:
  // A collective over `world`, a group of the same ranks, which is not used later. Errors as
  // MakeTcpCommunicator's (tcp_communicator.h).
  static absl::StatusOr<std::unique_ptr<ControlLink>> Create(Communicator& world,
                                                             ControlLinkOptions options);

  virtual ~ControlLink() = default;  // an ordered Leave, if there was none

  // The last step that was given to the ranks: one that does not finish is a stall. Rank 0, any
  // thread.
  virtual void SetIssuedStep(int64_t step) = 0;

  // The peers (rank 0: all other ranks) as of the link's last turn, at most a heartbeat ago. Any
  // thread.
  virtual std::vector<PeerHealth> Peers() const = 0;

  // Tells the peers that this process ends, and why (OK: an ordered end, no loss), and closes;
  // takes at most about 100 ms. on_lost is not called after it returned. Once; not from the
  // callbacks.
  virtual void Leave(const absl::Status& reason) = 0;
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_CONTROL_LINK_H_

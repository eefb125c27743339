// ControlMonitor: decides from heartbeats, closed connections and time which rank of a replica is
// suspect, lost or stuck. A pure state machine: no sockets, threads or clocks inside;
// control_link.h is the shell that feeds it.
//
// A peer is suspect after a second of silence and lost after `dead_after`. A step is stuck when a
// rank has work (a step issued and not finished) and finishes none for the stall time; the culprit
// is the rank furthest behind, and among equals one that does not itself wait for a peer.
#ifndef TRIREME_RUNTIME_COMM_CONTROL_MONITOR_H_
#define TRIREME_RUNTIME_COMM_CONTROL_MONITOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace trireme::comm {

// What a rank says about its compute thread. Steps count from 1; 0 is none yet.
struct Progress {
  int64_t finished_step = 0;
  bool is_waiting = false;  // for a peer (Communicator::IsWaiting)
};

enum class LossCause : uint8_t {
  kClosed,   // its connection ended: the process is gone
  kFailed,   // it said itself that it ends, and why
  kSilent,   // no heartbeat: stopped, or the network is cut
  kStalled,  // alive, but its step does not finish
};

struct PeerLost {
  LossCause cause = LossCause::kClosed;
  int rank = 0;
  std::string host;
  int64_t finished_step = 0;  // the last one it reported
  std::string reason;

  // Unavailable (kStalled: DeadlineExceeded), with "rank=2 host=n1 step=17: reason".
  absl::Status ToStatus() const;
};

// What is known of a peer at some moment.
struct PeerHealth {
  int rank = 0;
  int64_t finished_step = 0;  // the last one it reported
  absl::Time last_heard;
  bool is_waiting = false;  // for another rank, when it was last heard
  bool is_suspect = false;
  bool has_left = false;
};

struct MonitorOptions {
  absl::Duration heartbeat_period = absl::Milliseconds(250);
  absl::Duration suspect_after = absl::Seconds(1);
  // A stopped rank must be noticed, and the streams ended, within 3 s of the stop.
  absl::Duration dead_after = absl::Milliseconds(2500);
  // The stall time is this or 50 times the median step so far, whichever is longer.
  absl::Duration stall_timeout = absl::Seconds(10);
};

struct ControlEvent {
  enum class Kind : uint8_t { kSuspect, kRecovered, kLost };
  Kind kind;
  PeerLost peer;  // for kSuspect and kRecovered: rank, host and step only
};

// One thread.
class ControlMonitor {
 public:
  struct Member {
    int rank = 0;
    std::string host;
  };

  // Watches `peers`, all heard of at `now`. `self` takes part in the search for a stuck step.
  ControlMonitor(const MonitorOptions& options, const Member& self,
                 const std::vector<Member>& peers, absl::Time now);

  // `rank` is self or a peer; others are ignored.
  void OnProgress(int rank, const Progress& progress, absl::Time now);
  void OnLeaving(int rank, const absl::Status& reason);
  void OnClosed(int rank, const std::string& reason);

  // The last step given to the ranks, never less than before. Rank 0 only.
  void OnIssuedStep(int64_t step, absl::Time now);

  // Looks at the time; call at least every heartbeat period. Time in which the caller itself did
  // not run is not held against the peers.
  void OnTick(absl::Time now);

  // What happened since the last call, in order. kLost comes once in a monitor's life: what
  // follows the first loss is its consequence.
  std::vector<ControlEvent> TakeEvents();

  // Of every peer, in the order they were given.
  std::vector<PeerHealth> Peers() const;

 private:
  struct State {
    Member member;
    Progress progress;
    absl::Time last_heard;
    absl::Time last_advance;  // of its step, or when it got work after having none
    bool is_suspect = false;
    bool has_left = false;
  };

  State* Find(int rank);
  void Report(ControlEvent::Kind kind, const State& state, LossCause cause, std::string reason);
  void RecordStepTime(absl::Duration time);
  absl::Duration StallTime() const;
  void CheckSilence(State& state, absl::Time now);
  void CheckStall(absl::Time now);

  const MonitorOptions options_;
  std::vector<State> states_;  // self first
  int64_t issued_step_ = 0;
  absl::Time last_tick_;
  std::vector<absl::Duration> step_times_;  // the last ones, a ring
  size_t next_step_time_ = 0;
  bool has_reported_loss_ = false;
  std::vector<ControlEvent> events_;
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_CONTROL_MONITOR_H_

// Supervisor: decides when the children of a fleet (replicas and balancers) start, drain, end and
// start again. A pure state machine: no processes, sockets, clocks or randomness of its own inside;
// fleet_runner.h is the shell that feeds it.
//
// Terms: a child is one replica (with its launcher) or one balancer; an epoch numbers the starts of
// all children, rising; a sweep ends whatever is left of a child on every node, and says whether
// nothing is: no child starts before a sweep was clean, so two epochs never live side by side. A
// phase is a named part of a start with a deadline of its own.
#ifndef TRIREME_LAUNCHER_SUPERVISOR_H_
#define TRIREME_LAUNCHER_SUPERVISOR_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "launcher/exit_codes.h"
#include "launcher/restart_history.h"
#include "runtime/base/log.h"
#include "topology/cluster.h"

namespace trireme::launcher {

enum class ChildKind : uint8_t { kReplica, kBalancer };

struct StartPhase {
  std::string name;
  absl::Duration limit;
};

struct ChildSpec {
  std::string name;
  ChildKind kind = ChildKind::kReplica;
  int ranks = 1;
  std::vector<StartPhase> phases;  // in order, at least one
  topology::DrainTimes drain;
  topology::RestartRule restart;
  absl::Duration silence;  // without a sign of life while serving: lost
};

enum class ChildState : uint8_t {
  kSweeping,  // what is left of the last start is ended
  kWaiting,   // for the backoff to pass
  kStarting,
  kServing,
  kDraining,  // no new work; ends when its streams have
  kEnding,    // told to end, or lost
  kStopped,   // as asked
  kFailed,    // given up
};

// "serving"; lives for ever.
absl::string_view NameOf(ChildState state);

struct ChildStatus {
  ChildState state = ChildState::kSweeping;
  absl::Time since;              // of the state
  uint64_t epoch = 0;            // of the last start; 0: never started
  int phase = 0;                 // of the start, an index
  std::vector<int> rank_phases;  // [ranks]: the last one each has reached; -1: not heard of
  int64_t restarts = 0;          // starts after the first
  std::optional<int> exit_code;  // of the last end
  std::string reason;            // of the last end
  absl::Time next_start;         // while kWaiting
};

struct SupervisorAction {
  enum class Kind : uint8_t {
    kStart,         // start `child` as `epoch`
    kSignal,        // send `signal` to the child's first process
    kSweep,         // kill all that is left of `child`, every epoch; answer by OnSwept
    kLate,          // `ranks` of `child` are late in the phase named by `text`: say who and where
    kReport,        // one line for the log
    kFleetServing,  // once: requests can be answered
    kFinish,        // all children have ended: exit with `code`
  };
  Kind kind = Kind::kReport;
  int child = -1;
  uint64_t epoch = 0;
  int signal = 0;
  std::vector<int> ranks;
  LogLevel level = LogLevel::kInfo;
  std::string text;
  ExitCode code = ExitCode::kOk;
};

// One thread. Children are named by their index in the specs.
class Supervisor {
 public:
  // `last_epoch` is that of the run before; `seed` feeds the jitter. Sweeps, then starts all.
  Supervisor(std::vector<ChildSpec> children, uint64_t last_epoch, uint64_t seed, absl::Time now);

  // What happened. Events about a state that is over are ignored.
  void OnSwept(int child, const absl::Status& outcome, absl::Time now);
  void OnExited(int child, int code, const std::string& reason, absl::Time now);
  void OnPhase(int child, int rank, absl::string_view phase, absl::Time now);
  void OnServing(int child, absl::Time now);
  void OnReport(int child, absl::Time now);  // a sign of life
  // It says itself that it cannot go on; its processes are expected to leave.
  void OnLost(int child, const std::string& reason, absl::Time now);

  // What an operator asks. FailedPrecondition while the fleet stops.
  absl::Status Drain(int child, bool restart, absl::Time now);
  absl::Status RestartAll(absl::Time now);  // one after the other, replicas first
  // First call: drains balancers, then replicas. Second: ends them now. Third: kills.
  void Stop(absl::Time now);

  // Looks at the time; call several times a second. Time in which the caller did not run is not
  // held against silent children.
  void OnTick(absl::Time now);

  // What to do, in order.
  std::vector<SupervisorAction> TakeActions() { return std::exchange(actions_, {}); }

  int size() const { return static_cast<int>(children_.size()); }
  const ChildSpec& spec(int child) const { return children_[child].spec; }
  const ChildStatus& status(int child) const { return children_[child].status; }
  bool is_stopping() const { return stops_ > 0; }

 private:
  struct Child {
    ChildSpec spec;
    ChildStatus status;
    bool has_process = false;
    bool is_sweeping = false;                      // a sweep is under way
    bool wants_stop = false;                       // after this end: stay down
    bool wants_restart = false;                    // after this end: start at once
    absl::Time deadline = absl::InfiniteFuture();  // of the state
    absl::Time last_report;
    std::optional<int> killed_code;  // why we killed it, instead of the launcher's code
    std::string killed_reason;
    RestartHistory history;
  };

  void SetState(int index, ChildState state, absl::Time deadline, absl::Time now);
  void Start(int index, absl::Time now);
  void Sweep(int index, absl::Time now);
  void Signal(int index, int signal);
  void Kill(int index, std::optional<int> code, const std::string& reason, absl::Time now);
  void Terminate(int index, absl::Time now);
  void DrainChild(int index, bool restart, absl::Time now);
  void Settle(int index, absl::Time now);
  void SettleFailure(int index, int code, absl::Time now);
  void OnDeadline(int index, absl::Time now);
  void Report(int index, LogLevel level, absl::string_view text);
  void Advance(absl::Time now);
  void AdvanceRollingRestart(absl::Time now);
  void AnnounceFleet();
  bool AreAllDown(ChildKind kind) const;
  bool HaveAllFailed(ChildKind kind) const;

  std::vector<Child> children_;
  uint64_t epoch_;
  std::mt19937_64 random_;
  absl::Time last_tick_;
  int stops_ = 0;
  bool is_announced_ = false;
  bool is_finished_ = false;
  ExitCode finish_code_ = ExitCode::kOk;
  std::deque<int> rolling_;
  int rolling_child_ = -1;
  uint64_t rolling_epoch_ = 0;
  std::vector<SupervisorAction> actions_;
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_SUPERVISOR_H_

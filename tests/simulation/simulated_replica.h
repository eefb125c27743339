// A replica of several ranks: the real scheduler over blocks and slots, steps that take time, and
// tokens from the function of simulated_request.h. It can die by any rank, stand still, restart
// with a higher epoch (the supervisor's part), drain, and misbehave.
#ifndef TRIREME_TESTS_SIMULATION_SIMULATED_REPLICA_H_
#define TRIREME_TESTS_SIMULATION_SIMULATED_REPLICA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/balance/load_report.h"
#include "runtime/balance/prefix_affinity.h"
#include "runtime/schedule/scheduler.h"
#include "tests/simulation/simulated_request.h"
#include "tests/simulation/world.h"

namespace trireme::simulation {

// Ways to answer wrongly.
enum class Quirk : uint8_t {
  kNone,
  kNeverAnswers,
  kSlow,         // a token in a long time
  kRepeats,      // sends some tokens twice
  kSkips,        // leaves some tokens out
  kAfterFinish,  // sends tokens after the end
  kMiscounts,    // finishes before all tokens were sent
  kLies,         // reports no load, or numbers that cannot be
};
inline constexpr int kQuirks = 8;

struct ReplicaSettings {
  std::string name;
  std::string fingerprint = "model-a";
  int ranks = 2;
  int32_t slots = 4;
  int32_t blocks = 64;
  int32_t queue_max = 16;
  double step_scale = 1;  // unequal speeds
  double report_loss = 0;
  absl::Duration step_base = absl::Milliseconds(8);
  absl::Duration step_token = absl::Microseconds(100);
  bool caches_prefixes = true;
};

class SimulatedReplica {
 public:
  // Sends an answer or report to a balancer.
  using SendAnswer = std::function<void(int balancer, uint64_t incarnation, const Answer&)>;
  using SendReport = std::function<void(int balancer, const balance::LoadReport&)>;

  SimulatedReplica(World* world, const ReplicaSettings& settings, int balancers, Plant plant);
  ~SimulatedReplica() { Clear(); }

  // ---- Set once, before Start ----
  SendAnswer send_answer;
  SendReport send_report;
  std::function<void()> on_death;  // its connections break

  // ---- The supervisor's side ----
  void Start();
  // A rank dies. Rank 0 takes everything with it at once; after another one's death rank 0 ends
  // its streams with RANK_LOST first.
  void KillRank(int rank);
  void KillNow();
  // Takes nothing new; when the last stream has ended it dies and is started again.
  void Drain();
  void set_restart_delay(absl::Duration delay) { restart_delay_ = delay; }

  // ---- The balancers' side ----
  void OnExecute(const ExecuteCall& call);
  void OnCancel(int balancer, uint64_t incarnation, balance::RequestKey key, uint32_t attempt);
  void OnLease(int balancer);
  // The connection of a balancer broke: its streams are of no use.
  void OnBalancerGone(int balancer);

  // Broken books, or nothing.
  std::string CheckBooks() const;

  Process process;
  ReplicaSettings settings;
  Quirk quirk = Quirk::kNone;
  bool fingerprint_changes_at_restart = false;
  int64_t deaths = 0;
  int64_t tokens_computed = 0;
  uint64_t epoch() const { return epoch_; }
  size_t streams() const { return streams_.size(); }
  bool draining() const { return phase_ == balance::ReplicaPhase::kDraining; }
  bool serving() const { return process.alive() && phase_ == balance::ReplicaPhase::kServing; }

 private:
  using StreamKey = std::pair<std::pair<int, uint64_t>, balance::RequestKey>;
  struct Stream {
    ExecuteCall call;
    uint64_t token_key = 0;
    int64_t length = 0;
    int64_t next_position = 0;
    int64_t cached_tokens = 0;
    bool accepted = false;
    std::unique_ptr<schedule::Sequence> sequence;
    std::vector<int32_t> unsent;
  };

  void Clear();
  void ReportAndGoOn();
  void Report();
  void ReportTo(int balancer);
  void Step();
  void FinishStep();
  void Emit(Stream& stream, int32_t token);
  void SendFinish(Stream& stream);
  void Fail(const Stream& stream, const absl::Status& status);
  void Fail(const ExecuteCall& call, const absl::Status& status);
  void End(const StreamKey& key, bool leak);
  Answer AnswerTo(const ExecuteCall& call, Answer::Kind kind) const;
  void CheckLeases();

  World* const world_;
  const Plant plant_;
  balance::ReplicaPhase phase_ = balance::ReplicaPhase::kLost;
  uint64_t epoch_ = 0;
  uint64_t report_seq_ = 0;
  uint64_t step_ = 0;
  bool stepping_ = false;
  bool dying_ = false;
  absl::Duration restart_delay_ = absl::Seconds(1);
  std::unique_ptr<schedule::Scheduler> scheduler_;
  schedule::Batch batch_;
  std::map<StreamKey, std::unique_ptr<Stream>> streams_;
  std::map<const schedule::Sequence*, StreamKey> by_sequence_;
  std::vector<std::unique_ptr<Stream>> ended_;  // perhaps still in the step at hand
  std::map<StreamKey, uint32_t> last_attempts_;
  std::vector<absl::Time> leases_;  // [balancers] last heard
  balance::PrefixIndex cached_;
};

}  // namespace trireme::simulation

#endif  // TRIREME_TESTS_SIMULATION_SIMULATED_REPLICA_H_

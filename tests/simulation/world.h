// The ground that a simulated site stands on: one event loop with virtual time, one source of
// chance, processes that can be paused and killed, links between them that delay, hold and break,
// and a place for broken promises. Everything happens in one thread and follows from the seed.
#ifndef TRIREME_TESTS_SIMULATION_WORLD_H_
#define TRIREME_TESTS_SIMULATION_WORLD_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/balance/seeded_random.h"

namespace trireme::simulation {

// A fault of our own that is put in on purpose, to see that the checks find it.
enum class Plant : uint8_t {
  kNone,
  kLostToken,      // the balancer forgets to hand on a token
  kDoubleSend,     // the balancer hands a token on twice
  kSlotLeak,       // a replica keeps the sequence of a cancelled attempt
  kMissedFencing,  // the balancer takes answers of an old attempt for the current one's
  kUnfairQueue,    // the queue does not tell tenants apart
};

class World {
 public:
  using Callback = std::function<void()>;

  explicit World(uint64_t seed) : random(seed) {}

  absl::Time now() const { return now_; }
  void At(absl::Time time, Callback callback);
  // Runs the next event that is due by `end`; false when there is none, or a promise was broken.
  bool RunOne(absl::Time end);
  void RunUntil(absl::Time end);

  // A promise was broken. The first one stays.
  void Violate(const std::string& text);
  const std::string& violation() const { return violation_; }
  int64_t events() const { return events_; }

  balance::SeededRandom random;
  absl::Duration RandomBetween(absl::Duration low, absl::Duration high);

 private:
  struct Event {
    absl::Time time;
    uint64_t order;
    Callback callback;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  uint64_t order_ = 0;
  int64_t events_ = 0;
  std::priority_queue<Event> queue_;
  std::string violation_;
};

// What a process does happens through it: while paused everything waits, in order; a killed one
// does nothing more, and a later start is another incarnation.
class Process {
 public:
  explicit Process(World* world) : world_(world) {}

  void Start() { alive_ = true; }
  void Kill();
  void Pause() { paused_ = true; }
  void Resume();

  bool alive() const { return alive_; }
  bool paused() const { return paused_; }
  uint64_t incarnation() const { return incarnation_; }

  // Does it now, or when it is no longer paused.
  void Do(World::Callback callback);
  // Does it later, if this incarnation still lives then.
  void After(absl::Duration delay, World::Callback callback);

 private:
  World* const world_;
  bool alive_ = false;
  bool paused_ = false;
  uint64_t incarnation_ = 1;
  std::deque<World::Callback> inbox_;
};

// A connection between a balancer (side 0) and a replica (side 1). What is sent arrives in order,
// or not at all: a cut holds it, a reset drops it and tells both sides that live.
class Link {
 public:
  Link(World* world, Process* balancer, Process* replica);

  void Send(int to, World::Callback callback);
  void Cut(int to, bool cut);
  bool cut() const { return cut_[0] || cut_[1]; }
  bool connected() const { return connected_; }
  // Each side learns of it a little later through on_reset.
  void Reset();
  // Succeeds when both processes live and nothing is cut.
  bool Connect();
  uint64_t generation() const { return generation_; }

  absl::Duration delay_max = absl::Milliseconds(3);
  std::array<World::Callback, 2> on_reset;

 private:
  void Deliver(int to, uint64_t generation, const World::Callback& callback);

  World* const world_;
  const std::array<Process*, 2> sides_;
  bool connected_ = false;
  uint64_t generation_ = 1;
  std::array<bool, 2> cut_ = {};
  std::array<absl::Time, 2> last_arrival_;
  std::array<std::deque<World::Callback>, 2> held_;
};

}  // namespace trireme::simulation

#endif  // TRIREME_TESTS_SIMULATION_WORLD_H_

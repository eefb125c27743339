#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace trireme::simulation {

void World::At(absl::Time time, Callback callback) {
  queue_.push({std::max(time, now_), ++order_, std::move(callback)});
}

bool World::RunOne(absl::Time end) {
  if (!violation_.empty() || queue_.empty() || queue_.top().time > end) {
    return false;
  }
  const Event event = queue_.top();
  queue_.pop();
  now_ = event.time;
  ++events_;
  event.callback();
  return true;
}

void World::RunUntil(absl::Time end) {
  while (RunOne(end)) {
  }
  if (violation_.empty()) {
    now_ = end;
  }
}

void World::Violate(const std::string& text) {
  if (violation_.empty()) {
    violation_ = absl::StrFormat(
        "at %.3f s: %s", absl::ToDoubleSeconds(now_ - absl::UnixEpoch() - absl::Hours(1)), text);
  }
}

absl::Duration World::RandomBetween(absl::Duration low, absl::Duration high) {
  return low + (high - low) * random.Uniform();
}

void Process::Kill() {
  alive_ = false;
  paused_ = false;
  ++incarnation_;
  inbox_.clear();
}

void Process::Resume() {
  paused_ = false;
  while (!paused_ && !inbox_.empty()) {
    const World::Callback callback = std::move(inbox_.front());
    inbox_.pop_front();
    callback();
  }
}

void Process::Do(World::Callback callback) {
  if (!alive_) {
    return;
  }
  if (paused_) {
    inbox_.push_back(std::move(callback));
    return;
  }
  callback();
}

void Process::After(absl::Duration delay, World::Callback callback) {
  world_->At(world_->now() + delay,
             [this, incarnation = incarnation_, callback = std::move(callback)] {
               if (incarnation == incarnation_) {
                 Do(callback);
               }
             });
}

Link::Link(World* world, Process* balancer, Process* replica)
    : world_(world), sides_{balancer, replica}, last_arrival_{world->now(), world->now()} {}

void Link::Send(int to, World::Callback callback) {
  if (!connected_) {
    return;
  }
  const auto side = static_cast<size_t>(to);
  const absl::Duration delay = world_->RandomBetween(absl::Microseconds(100), delay_max);
  last_arrival_[side] = std::max(last_arrival_[side], world_->now() + delay);
  world_->At(last_arrival_[side],
             [this, to, generation = generation_, callback = std::move(callback)] {
               Deliver(to, generation, callback);
             });
}

void Link::Deliver(int to, uint64_t generation, const World::Callback& callback) {
  const auto side = static_cast<size_t>(to);
  if (generation != generation_ || !connected_) {
    return;
  }
  if (cut_[side]) {
    held_[side].push_back(callback);
    return;
  }
  sides_[side]->Do(callback);
}

void Link::Cut(int to, bool cut) {
  const auto side = static_cast<size_t>(to);
  cut_[side] = cut;
  while (!cut_[side] && !held_[side].empty()) {
    const World::Callback callback = std::move(held_[side].front());
    held_[side].pop_front();
    sides_[side]->Do(callback);
  }
}

void Link::Reset() {
  if (!connected_) {
    return;
  }
  connected_ = false;
  ++generation_;
  held_ = {};
  for (size_t side = 0; side < 2; ++side) {
    if (sides_[side]->alive()) {
      sides_[side]->After(world_->RandomBetween(absl::Milliseconds(1), absl::Milliseconds(20)),
                          on_reset[side]);
    }
  }
}

bool Link::Connect() {
  if (connected_ || cut() || !sides_[0]->alive() || !sides_[1]->alive() || sides_[1]->paused()) {
    return false;
  }
  connected_ = true;
  return true;
}

}  // namespace trireme::simulation

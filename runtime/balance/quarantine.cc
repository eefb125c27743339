#include "runtime/balance/quarantine.h"

#include <algorithm>

namespace trireme::balance {
namespace {

constexpr int kBlameAtWork = 2;
constexpr int kBlameInQueue = 1;
constexpr int kPoisonBlame = 4;

}  // namespace

bool Suspicion::NoteDeath(const Death& death, bool at_work) {
  if (death.replica == last_.replica && death.epoch == last_.epoch) {
    return false;
  }
  if (death.tokens - last_.tokens >= kInnocentTokens) {
    blame_ = 0;
  }
  last_ = death;
  last_blame_ = at_work ? kBlameAtWork : kBlameInQueue;
  blame_ += last_blame_;
  return true;
}

void Suspicion::ForgiveLast() {
  blame_ -= last_blame_;
  last_blame_ = 0;
}

bool Suspicion::IsPoison() const { return blame_ >= kPoisonBlame; }

void Quarantine::Add(uint64_t prompt_hash, absl::Time until) {
  if (until_.size() >= kPromptsMax && !until_.contains(prompt_hash)) {
    until_.erase(std::min_element(until_.begin(), until_.end(), [](const auto& a, const auto& b) {
      return a.second < b.second;
    }));
  }
  until_[prompt_hash] = until;
}

bool Quarantine::Holds(uint64_t prompt_hash, absl::Time now) {
  const auto found = until_.find(prompt_hash);
  if (found == until_.end()) {
    return false;
  }
  if (now >= found->second) {
    until_.erase(found);
    return false;
  }
  return true;
}

}  // namespace trireme::balance

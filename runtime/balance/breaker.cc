#include "runtime/balance/breaker.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace trireme::balance {

bool Breaker::Allows(absl::Time now) const {
  switch (state_) {
    case State::kClosed:
      return true;
    case State::kOpen:
      return now >= open_until_;
    case State::kHalfOpen:
      return !probing_;
  }
  return false;
}

bool Breaker::Start(absl::Time now) {
  CHECK(Allows(now));
  if (state_ == State::kClosed) {
    return false;
  }
  state_ = State::kHalfOpen;
  probing_ = true;
  return true;
}

void Breaker::OnSuccess(bool probe) {
  if (state_ == State::kClosed) {
    failures_ = 0;
    return;
  }
  if (!probe || state_ != State::kHalfOpen) {
    return;  // sent before the opening
  }
  probing_ = false;
  if (++successes_ >= options_->successes_to_close) {
    Reset();
  }
}

void Breaker::OnFailure(bool probe, bool may_open, absl::Time now, SeededRandom* random) {
  if (state_ == State::kClosed) {
    ++failures_;
    if (failures_ >= options_->failures_to_open && may_open) {
      Open(now, random);
    }
    return;
  }
  if (probe && state_ == State::kHalfOpen) {
    Open(now, random);
  }
}

void Breaker::OnNoVerdict(bool probe) {
  if (probe && state_ == State::kHalfOpen) {
    probing_ = false;
  }
}

void Breaker::Reset() {
  state_ = State::kClosed;
  failures_ = 0;
  successes_ = 0;
  openings_ = 0;
  probing_ = false;
  open_until_ = absl::InfinitePast();
}

void Breaker::Open(absl::Time now, SeededRandom* random) {
  state_ = State::kOpen;
  probing_ = false;
  successes_ = 0;
  const double doublings = std::ldexp(1.0, std::min(openings_++, 20));
  const absl::Duration wait = std::min(options_->open_for * doublings, options_->open_for_max);
  open_until_ = now + wait * (1 + 0.2 * random->Uniform());  // replicas do not come back as one
}

absl::string_view Breaker::state_name() const {
  switch (state_) {
    case State::kClosed:
      return "closed";
    case State::kOpen:
      return "open";
    case State::kHalfOpen:
      return "half-open";
  }
  return "";
}

absl::Time Breaker::opens_until() const {
  return state_ == State::kOpen ? open_until_ : absl::InfiniteFuture();
}

}  // namespace trireme::balance

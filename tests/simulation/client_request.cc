#include "tests/simulation/client_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace trireme::simulation {

ClientRequest::ClientRequest(World* world,
                             std::vector<std::unique_ptr<SimulatedBalancer>>* balancers,
                             SimulatedRequest request)
    : world_(world), balancers_(balancers), request_(std::move(request)) {}

void ClientRequest::Submit(size_t balancer) {
  balancer_ = balancer;
  asked_ = std::min(asked_, world_->now());
  if (!with_tokens_) {
    received_.clear();
    fingerprint_.clear();
  }
  (*balancers_)[balancer]->Submit(this, received_, fingerprint_);
}

void ClientRequest::Cancel() {
  if (!ended_) {
    cancelled = true;
    (*balancers_)[balancer_]->Cancel(this);
  }
}

void ClientRequest::OnTokens(int64_t first_position, const std::vector<int32_t>& tokens) {
  if (ended_) {
    world_->Violate(absl::StrFormat("request %d got tokens after its end", request_.id));
    return;
  }
  if (first_position != static_cast<int64_t>(received_.size())) {
    world_->Violate(absl::StrFormat("request %d got position %d, wanted %d", request_.id,
                                    first_position, received_.size()));
    return;
  }
  for (const int32_t token : tokens) {
    const auto position = static_cast<int64_t>(received_.size());
    const int32_t previous = received_.empty() ? -1 : received_.back();
    if (fingerprint_.empty()) {
      for (const char* fingerprint : {"model-a", "model-b"}) {
        if (SimulatedRequest::Token(request_.Key(fingerprint), 0, -1) == token) {
          fingerprint_ = fingerprint;
          token_key_ = request_.Key(fingerprint);
        }
      }
    }
    if (fingerprint_.empty() || SimulatedRequest::Token(token_key_, position, previous) != token) {
      world_->Violate(
          absl::StrFormat("request %d got a wrong token at position %d", request_.id, position));
      return;
    }
    received_.push_back(token);
    if (first_token_ == absl::InfiniteFuture()) {
      first_token_ = world_->now();
    } else {
      longest_gap_ = std::max(longest_gap_, world_->now() - last_token_);
    }
    last_token_ = world_->now();
  }
}

void ClientRequest::OnFinished(const balance::RequestStory& story) {
  if (ended_) {
    world_->Violate(absl::StrFormat("request %d ended twice", request_.id));
    return;
  }
  ended_ = true;
  attempts_ += story.attempts;
  if (static_cast<int64_t>(received_.size()) != request_.Length()) {
    world_->Violate(absl::StrFormat("request %d finished with %d tokens, wanted %d", request_.id,
                                    received_.size(), request_.Length()));
  }
}

void ClientRequest::OnFailed(const absl::Status& status) {
  if (ended_) {
    world_->Violate(absl::StrFormat("request %d ended twice", request_.id));
    return;
  }
  ended_ = true;
  status_ = status;
  if (const std::string wrong = judge(*this, status); !wrong.empty()) {
    world_->Violate(absl::StrFormat("request %d: %s: %s", request_.id, wrong, status.ToString()));
  }
}

void ClientRequest::OnBroken() {
  if (ended_) {
    return;
  }
  with_tokens_ = !received_.empty() && world_->random.Chance(0.5);
  const size_t next = (balancer_ + 1) % balancers_->size();
  world_->At(world_->now() + world_->RandomBetween(absl::Milliseconds(5), absl::Milliseconds(50)),
             [this, next] {
               if (!ended_) {
                 Submit(next);
               }
             });
}

}  // namespace trireme::simulation

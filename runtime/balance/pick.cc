#include "runtime/balance/pick.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/balance/prefix_affinity.h"

namespace trireme::balance {
namespace {

constexpr double kUnknownRate = 1000;  // tokens a second, until the replica has measured its own
// Below so many requests the bound is not applied: a mean of few is noise, not a hot spot.
constexpr double kBoundFromRequests = 4;

struct Scored {
  size_t index = 0;
  double predicted_seconds = 0;
  uint64_t ownership = 0;
  double load_per_share = 0;
  bool within_bound = true;
};

double RateOf(const Candidate& candidate) {
  return candidate.prefill_tokens_per_second > 0 ? candidate.prefill_tokens_per_second
                                                 : kUnknownRate;
}

// What part of the load belongs to a replica: its weight and its speed against the others'.
double ShareOf(const Candidate& candidate, double mean_rate) {
  return candidate.weight * std::clamp(RateOf(candidate) / mean_rate, 0.1, 10.0);
}

std::vector<Scored> Score(const PickRequest& request, absl::Span<const Candidate> candidates,
                          const PickOptions& options) {
  double rates = 0;
  for (const Candidate& candidate : candidates) {
    rates += RateOf(candidate);
  }
  const double mean_rate = rates / static_cast<double>(candidates.size());
  double total = static_cast<double>(request.load_tokens);
  double shares = 0;
  for (const Candidate& candidate : candidates) {
    total += static_cast<double>(candidate.tokens_in_flight);
    shares += ShareOf(candidate, mean_rate);
  }
  std::vector<Scored> scored;
  scored.reserve(candidates.size());
  for (size_t index = 0; index < candidates.size(); ++index) {
    const Candidate& candidate = candidates[index];
    if (!candidate.usable) {
      continue;
    }
    const double share = ShareOf(candidate, mean_rate);
    const double mean = total * share / shares;
    // A replica that starts slowly gets no such grace.
    const double grace =
        kBoundFromRequests * static_cast<double>(request.load_tokens) * candidate.weight;
    const double bound = std::max(options.bounded_load * mean, mean + grace);
    const auto load = static_cast<double>(candidate.tokens_in_flight);
    scored.push_back(
        {.index = index,
         .predicted_seconds = absl::ToDoubleSeconds(PredictFirstToken(request, candidate)),
         .ownership = RendezvousScore(request.affinity, candidate.name_hash),
         .load_per_share = load / share,
         .within_bound = load + static_cast<double>(request.load_tokens) <= bound});
  }
  return scored;
}

bool Faster(const Scored& a, const Scored& b) {
  return std::make_tuple(a.predicted_seconds, b.ownership) <
         std::make_tuple(b.predicted_seconds, a.ownership);
}

bool LessLoaded(const Scored& a, const Scored& b) {
  return std::make_tuple(a.load_per_share, b.ownership) <
         std::make_tuple(b.load_per_share, a.ownership);
}

bool LessOwner(const Scored& a, const Scored& b) { return a.ownership < b.ownership; }

struct Choice {
  Scored scored;
  PickReason reason = PickReason::kOnly;
};

Choice TwoChoices(const std::vector<Scored>& scored, SeededRandom* random) {
  const size_t first = random->Below(scored.size());
  size_t second = random->Below(scored.size() - 1);
  second += second >= first ? 1 : 0;
  return {std::min(scored[first], scored[second], LessLoaded), PickReason::kTwoChoices};
}

Choice Choose(const std::vector<Scored>& scored, absl::Span<const Candidate> candidates,
              const PickOptions& options, SeededRandom* random) {
  if (scored.size() == 1) {
    return {scored.front(), PickReason::kOnly};
  }
  const auto stale = std::count_if(scored.begin(), scored.end(),
                                   [&](const Scored& one) { return candidates[one.index].stale; });
  if (2 * static_cast<size_t>(stale) > scored.size()) {
    return TwoChoices(scored, random);
  }
  std::vector<Scored> within;
  std::copy_if(scored.begin(), scored.end(), std::back_inserter(within),
               [](const Scored& one) { return one.within_bound; });
  if (within.empty()) {
    return {*std::min_element(scored.begin(), scored.end(), LessLoaded), PickReason::kLeastLoaded};
  }
  if (random->Chance(options.explore)) {
    return {within[random->Below(within.size())], PickReason::kExplored};
  }
  const Scored& fastest = *std::min_element(within.begin(), within.end(), Faster);
  const Scored& owner = *std::max_element(within.begin(), within.end(), LessOwner);
  // A prediction is no finer than a step: who comes waits for the next one.
  const double slack =
      absl::ToDoubleSeconds(options.affinity_slack + candidates[owner.index].step_time);
  if (owner.predicted_seconds <= fastest.predicted_seconds + slack) {
    return {owner, PickReason::kAffinity};
  }
  return {fastest, PickReason::kFastest};
}

std::string Explain(const Choice& choice, const std::vector<Scored>& scored,
                    absl::Span<const Candidate> candidates) {
  std::string text = absl::StrFormat("chosen=%d reason=%s", candidates[choice.scored.index].key,
                                     PickReasonName(choice.reason));
  for (const Scored& one : scored) {
    const Candidate& candidate = candidates[one.index];
    absl::StrAppendFormat(
        &text,
        "; replica=%d first_token_ms=%.1f cached_tokens=%d queued_tokens=%d tokens_in_flight=%d "
        "weight=%.2f%s%s",
        candidate.key, one.predicted_seconds * 1e3, candidate.cached_tokens,
        candidate.queued_tokens, candidate.tokens_in_flight, candidate.weight,
        candidate.stale ? " stale" : "", one.within_bound ? "" : " over_bound");
  }
  return text;
}

}  // namespace

absl::string_view PickReasonName(PickReason reason) {
  switch (reason) {
    case PickReason::kOnly:
      return "only";
    case PickReason::kAffinity:
      return "affinity";
    case PickReason::kFastest:
      return "fastest";
    case PickReason::kExplored:
      return "explored";
    case PickReason::kTwoChoices:
      return "two_choices";
    case PickReason::kLeastLoaded:
      return "least_loaded";
  }
  return "";
}

absl::Duration PredictFirstToken(const PickRequest& request, const Candidate& candidate) {
  const int64_t uncached = std::max<int64_t>(request.prompt_tokens - candidate.cached_tokens, 1);
  const double prefill =
      static_cast<double>(candidate.queued_tokens + uncached) / RateOf(candidate);
  // Places of a full batch come free one after the other.
  double place = 0;
  if (candidate.waiting_requests > 0) {
    place = static_cast<double>(candidate.waiting_requests) *
            static_cast<double>(request.expected_output_tokens) /
            static_cast<double>(std::max<int64_t>(candidate.running_sequences, 1)) *
            absl::ToDoubleSeconds(candidate.step_time);
  }
  return absl::Seconds(prefill + place) + candidate.step_time;
}

std::optional<Picked> Pick(const PickRequest& request, absl::Span<const Candidate> candidates,
                           const PickOptions& options, SeededRandom* random) {
  const std::vector<Scored> scored = Score(request, candidates, options);
  if (scored.empty()) {
    return std::nullopt;
  }
  const Choice choice = Choose(scored, candidates, options, random);
  Picked picked{.index = choice.scored.index, .reason = choice.reason};
  if (request.explain) {
    picked.explanation = Explain(choice, scored, candidates);
  }
  return picked;
}

}  // namespace trireme::balance

#include "runtime/sample/stop_condition.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/utf8.h"

namespace trireme::sample {
namespace {

// Collects violations: the first one gives the message, all are attached as fields.
class Violations {
 public:
  void Add(absl::string_view reason, const std::string& field, const std::string& description) {
    if (status_.ok()) {
      status_ =
          WithReason(absl::InvalidArgumentError(absl::StrCat(field, ": ", description)), reason);
    } else if (ReasonOf(status_) != reason) {
      status_ = WithReason(status_, kReasonBadParameter);
    }
    status_ = WithField(status_, field, description);
  }
  absl::Status status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace

absl::Status ValidateStoppingOptions(const StoppingOptions& options, int64_t vocabulary) {
  Violations violations;
  if (options.max_tokens < 1) {
    violations.Add(
        kReasonBadParameter, "stopping.max_tokens",
        absl::StrFormat("%d is below 1; ask for at least one token", options.max_tokens));
  }
  if (options.stop_strings.size() > kStopStringsMax) {
    violations.Add(kReasonBadParameter, "stopping.stop_strings",
                   absl::StrFormat("%d strings; at most %d are taken", options.stop_strings.size(),
                                   kStopStringsMax));
  }
  const size_t strings = std::min<size_t>(options.stop_strings.size(), kStopStringsMax);
  for (size_t index = 0; index < strings; ++index) {
    const std::string& string = options.stop_strings[index];
    const std::string field = absl::StrFormat("stopping.stop_strings[%d]", index);
    if (string.empty() || string.size() > kStopStringBytesMax) {
      violations.Add(kReasonBadParameter, field,
                     absl::StrFormat("%d bytes; a stop string has 1 to %d", string.size(),
                                     kStopStringBytesMax));
    } else if (!IsValidUtf8(string)) {
      violations.Add(kReasonBadParameter, field, "not valid UTF-8; send text");
    }
  }
  if (options.stop_token_ids.size() > kStopTokenIdsMax) {
    violations.Add(kReasonBadParameter, "stopping.stop_token_ids",
                   absl::StrFormat("%d ids; at most %d are taken", options.stop_token_ids.size(),
                                   kStopTokenIdsMax));
  }
  const size_t ids = std::min<size_t>(options.stop_token_ids.size(), kStopTokenIdsMax);
  for (size_t index = 0; index < ids; ++index) {
    const int32_t token_id = options.stop_token_ids[index];
    if (token_id < 0 || token_id >= vocabulary) {
      violations.Add(
          kReasonBadTokenId, absl::StrFormat("stopping.stop_token_ids[%d]", index),
          absl::StrFormat("%d is outside the vocabulary, 0 to %d", token_id, vocabulary - 1));
    }
  }
  return violations.status();
}

absl::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kStopToken:
      return "stop_token";
    case FinishReason::kMaxTokens:
      return "max_tokens";
    case FinishReason::kContextFull:
      return "context_full";
  }
  return "unknown";
}

StopCondition::StopCondition(const StoppingOptions& options, int64_t prompt_tokens, int64_t context)
    : max_tokens_(options.max_tokens),
      tokens_left_(context - prompt_tokens),
      stop_token_ids_(options.stop_token_ids),
      ignore_eos_(options.ignore_eos),
      stop_strings_(options.stop_strings) {
  CHECK_GT(max_tokens_, 0);
  CHECK_GT(tokens_left_, 0);
}

bool StopCondition::EndsBefore(int32_t token_id, bool end_of_generation) const {
  return (end_of_generation && !ignore_eos_) ||
         std::find(stop_token_ids_.begin(), stop_token_ids_.end(), token_id) !=
             stop_token_ids_.end();
}

StopDecision StopCondition::Append(int32_t token_id, bool end_of_generation, absl::string_view text,
                                   std::string* shown) {
  if (EndsBefore(token_id, end_of_generation)) {
    stop_strings_.Flush(shown);
    return {.emit = false,
            .stop = true,
            .reason =
                end_of_generation && !ignore_eos_ ? FinishReason::kEos : FinishReason::kStopToken};
  }
  ++emitted_tokens_;
  --tokens_left_;
  const int match = stop_strings_.Append(text, shown);
  if (match >= 0) {
    return {.stop = true, .reason = FinishReason::kStopString, .stop_string_index = match};
  }
  if (emitted_tokens_ >= max_tokens_) {
    stop_strings_.Flush(shown);
    return {.stop = true, .reason = FinishReason::kMaxTokens};
  }
  if (tokens_left_ <= 0) {
    stop_strings_.Flush(shown);
    return {.stop = true, .reason = FinishReason::kContextFull};
  }
  return {};
}

}  // namespace trireme::sample

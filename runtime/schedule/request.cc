#include "runtime/schedule/request.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/status_macros.h"
#include "runtime/cache/block_pool.h"

namespace trireme::schedule {
namespace {

absl::Status Refusal(absl::string_view reason, absl::string_view field,
                     const std::string& description) {
  return WithField(WithReason(absl::InvalidArgumentError(description), reason), field, description);
}

absl::Status CheckLengths(const Request& request, const RequestLimits& limits) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const auto emitted_tokens = static_cast<int64_t>(request.emitted.size());
  if (prompt_tokens == 0) {
    return Refusal(kReasonBadParameter, "prompt", "the prompt is empty; send at least one token");
  }
  if (prompt_tokens >= limits.context) {
    return Refusal(kReasonPromptTooLong, "prompt",
                   absl::StrFormat("the prompt has %d tokens and the context %d positions; at most "
                                   "%d tokens leave room for an answer",
                                   prompt_tokens, limits.context, limits.context - 1));
  }
  if (prompt_tokens + emitted_tokens > limits.context) {
    return Refusal(kReasonPromptTooLong, "emitted",
                   absl::StrFormat("prompt and emitted tokens are %d + %d, the context has %d "
                                   "positions",
                                   prompt_tokens, emitted_tokens, limits.context));
  }
  if (emitted_tokens > request.stopping.max_tokens) {
    return Refusal(kReasonBadParameter, "emitted",
                   absl::StrFormat("%d tokens are emitted already, above max_tokens, %d",
                                   emitted_tokens, request.stopping.max_tokens));
  }
  const int64_t blocks = BlocksAtMost(request, limits.context);
  if (blocks > limits.blocks) {
    return Refusal(kReasonPromptTooLong, "stopping.max_tokens",
                   absl::StrFormat("prompt and answer may need %d KV blocks of %d tokens and the "
                                   "cache has %d; lower max_tokens, %d, or shorten the prompt, %d "
                                   "tokens",
                                   blocks, cache::kBlockTokens, limits.blocks,
                                   request.stopping.max_tokens, prompt_tokens));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t BlocksAtMost(const Request& request, int64_t context) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const int64_t room = std::max<int64_t>(context - prompt_tokens, 0);
  const int64_t tokens = prompt_tokens + std::min(request.stopping.max_tokens, room);
  return cache::BlocksFor(tokens - 1);
}

absl::Status ValidateTokenIds(absl::Span<const int32_t> token_ids, absl::string_view field,
                              int64_t vocabulary) {
  for (size_t index = 0; index < token_ids.size(); ++index) {
    if (token_ids[index] < 0 || token_ids[index] >= vocabulary) {
      return Refusal(kReasonBadTokenId, absl::StrFormat("%s[%d]", field, index),
                     absl::StrFormat("%s[%d] is %d, outside the vocabulary, 0 to %d", field, index,
                                     token_ids[index], vocabulary - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateRequest(const Request& request, const RequestLimits& limits) {
  RETURN_IF_ERROR(sample::ValidateStoppingOptions(request.stopping, limits.vocabulary));
  RETURN_IF_ERROR(sample::ValidateSamplingOptions(request.sampling));
  RETURN_IF_ERROR(CheckLengths(request, limits));
  RETURN_IF_ERROR(ValidateTokenIds(request.prompt, "prompt", limits.vocabulary));
  return ValidateTokenIds(request.emitted, "emitted", limits.vocabulary);
}

}  // namespace trireme::schedule

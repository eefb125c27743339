#include "runtime/balance/token_log.h"

namespace trireme::balance {

TokenVerdict TokenLog::Append(int64_t first_position, absl::Span<const int32_t> token_ids) {
  if (first_position < size()) {
    return TokenVerdict::kRepeat;
  }
  if (first_position > size()) {
    return TokenVerdict::kGap;
  }
  if (token_ids.empty()) {
    return TokenVerdict::kEmpty;
  }
  if (size() + static_cast<int64_t>(token_ids.size()) > max_tokens_) {
    return TokenVerdict::kTooMany;
  }
  tokens_.insert(tokens_.end(), token_ids.begin(), token_ids.end());
  return TokenVerdict::kNew;
}

}  // namespace trireme::balance

// The tokens that a request has emitted, by position: what a later attempt goes on from, and what
// tells a new token from a repeated one. Append-only, bounded by the request's max_tokens.
#ifndef TRIREME_RUNTIME_BALANCE_TOKEN_LOG_H_
#define TRIREME_RUNTIME_BALANCE_TOKEN_LOG_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace trireme::balance {

enum class TokenVerdict : uint8_t {
  kNew,      // appended
  kEmpty,    // no tokens: nothing to do
  kRepeat,   // begins before the next position
  kGap,      // begins after it
  kTooMany,  // more than max_tokens
};

// Thread rule: one thread.
class TokenLog {
 public:
  // `emitted` is there already.
  TokenLog(absl::Span<const int32_t> emitted, int64_t max_tokens)
      : tokens_(emitted.begin(), emitted.end()), max_tokens_(max_tokens) {}

  // Appends all of `token_ids` or, with another verdict than kNew, none.
  TokenVerdict Append(int64_t first_position, absl::Span<const int32_t> token_ids);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::vector<int32_t>& tokens() const { return tokens_; }

 private:
  std::vector<int32_t> tokens_;
  const int64_t max_tokens_;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_TOKEN_LOG_H_

// Rank files, as tiktoken has them: a line for each token with the base64 of its bytes, a space and
// its rank, which is its id and its priority in merging. Expressions and special tokens are not in
// the file (rank_vocabulary.h).
#ifndef TRIREME_RUNTIME_TEXT_RANK_FILE_H_
#define TRIREME_RUNTIME_TEXT_RANK_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::text {

// The longest published token has 128 bytes.
inline constexpr size_t kRankTokenBytesMax = 512;

// Whether the first line looks like one of a rank file; no other tokenizer file begins like that.
bool IsRankFile(absl::string_view file);

// The bytes of each token, [rank]. Empty lines are skipped. Errors (InvalidArgument), with the
// line: no base64; a rank that is no number, has another token already, or leaves a hole below it;
// a token that is empty, over kRankTokenBytesMax bytes or there twice; a byte that is no token.
absl::StatusOr<std::vector<std::string>> ReadRankFile(absl::string_view file);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_RANK_FILE_H_

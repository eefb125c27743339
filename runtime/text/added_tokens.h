// The added tokens of a tokenizer.json: texts that are tokens by themselves wherever they stand,
// before the pre-tokenizer, with the file's flags for the surroundings.
#ifndef TRIREME_RUNTIME_TEXT_ADDED_TOKENS_H_
#define TRIREME_RUNTIME_TEXT_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "runtime/text/special_tokens.h"

namespace trireme::text {

// A longer one is refused: each position of a text is looked at once per byte of the longest.
inline constexpr size_t kAddedTokenBytesMax = 1024;

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;    // only between characters that are in no word
  bool takes_left = false;     // swallows the white space before it
  bool takes_right = false;    // and after it
  bool is_normalized = false;  // matches the normalized text
  bool is_special = false;
};

// Reads added_tokens; `tokens` are the model's own, [id], and get the new ones appended. As in the
// reference an id must be that of the model's token of equal content, or the next one that is free.
// Errors (InvalidArgument): members that are missing or wrong, any other id, a content of over 1024
// bytes.
absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& list,
                                                        const std::string& path,
                                                        std::vector<std::string>* tokens);

// What a rule says about a token that stands in a text.
enum class AddedTokenVerdict : uint8_t {
  kMatch,
  kText,    // it is text, and what begins inside of it is too
  kAbsent,  // as if the token did not exist
};

// Immutable after construction; any number of threads may call Find.
class AddedTokenFinder {
 public:
  // Of tokens of equal content the last one counts; empty ones never match.
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // The leftmost, and there the longest, matches. `judge` is asked with the bytes of the token
  // itself. A match may begin before the end of the one before it, when that one swallowed white
  // space in which a token stands: the text between matches goes on at the end of the last one.
  std::vector<SpecialTokenMatch> Find(
      absl::string_view text,
      absl::FunctionRef<AddedTokenVerdict(const AddedToken&, size_t begin, size_t end)> judge)
      const;

 private:
  static uint64_t Edge(uint32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
  }

  std::vector<AddedToken> tokens_;
  std::vector<int32_t> token_of_node_ = {-1};  // index, or -1; node 0 is the root
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::array<bool, 256> begins_ = {};  // by first byte
};

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_ADDED_TOKENS_H_

// When a sequence ends, and which of its tokens and text its reader sees. Fed with every generated
// token in order; on a resumed stream the tokens of earlier attempts are fed first, with their
// output thrown away.
//
//  * A token of the end-of-generation set or of the caller's stop ids ends the sequence and is not
//    itself emitted. With ignore_eos the end-of-generation tokens are ordinary tokens.
//  * A stop string ends it too: the tokens that made it are emitted, the text ends before it.
//  * max_tokens and the context's end come last: their token is emitted.
#ifndef TRIREME_RUNTIME_SAMPLE_STOP_CONDITION_H_
#define TRIREME_RUNTIME_SAMPLE_STOP_CONDITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/sample/stop_strings.h"

namespace trireme::sample {

struct StoppingOptions {
  int64_t max_tokens = 0;                      // >= 1; counted over emitted and new tokens together
  std::vector<std::string> stop_strings = {};  // each 1..256 bytes of UTF-8, at most 16
  std::vector<int32_t> stop_token_ids =
      {};                   // besides the model's end-of-generation set, at most 64
  bool ignore_eos = false;  // the end-of-generation set does not stop
};

inline constexpr int kStopStringsMax = 16;
inline constexpr int kStopStringBytesMax = 256;
inline constexpr int kStopTokenIdsMax = 64;

// InvalidArgument (BAD_PARAMETER, or BAD_TOKEN_ID when only a token id is at fault) with every
// violation as a field: "stopping.max_tokens", "stopping.stop_strings[2]", ...
absl::Status ValidateStoppingOptions(const StoppingOptions& options, int64_t vocabulary);

enum class FinishReason : uint8_t { kEos, kStopString, kStopToken, kMaxTokens, kContextFull };

// "eos", "stop_string", "stop_token", "max_tokens", "context_full".
absl::string_view FinishReasonName(FinishReason reason);

// What one generated token led to.
struct StopDecision {
  bool emit = true;                          // the token belongs to the output
  bool stop = false;                         // the sequence ends here
  FinishReason reason = FinishReason::kEos;  // when stop
  int stop_string_index = -1;                // for kStopString
};

class StopCondition {
 public:
  // `options` are valid. `prompt_tokens` of `context` positions are taken by the prompt.
  StopCondition(const StoppingOptions& options, int64_t prompt_tokens, int64_t context);

  // Whether the token would end the sequence without belonging to its output, so that no text need
  // be made of it.
  bool EndsBefore(int32_t token_id, bool end_of_generation) const;

  // Takes the next generated token and the text it adds (empty for control tokens and where text is
  // not made), and appends to *shown the text that may be shown now; at a stop that is all of it.
  // Not called again after a stop. Allocates nothing once *shown has its capacity.
  StopDecision Append(int32_t token_id, bool end_of_generation, absl::string_view text,
                      std::string* shown);

  // Generated tokens that belong to the output.
  int64_t emitted_tokens() const { return emitted_tokens_; }
  // Text is needed to decide.
  bool has_stop_strings() const { return !stop_strings_.empty(); }
  const std::string& stop_string(int index) const { return stop_strings_.string(index); }

 private:
  int64_t max_tokens_;
  int64_t tokens_left_;  // until the context is full
  std::vector<int32_t> stop_token_ids_;
  bool ignore_eos_;
  StopStrings stop_strings_;
  int64_t emitted_tokens_ = 0;
};

}  // namespace trireme::sample

#endif  // TRIREME_RUNTIME_SAMPLE_STOP_CONDITION_H_

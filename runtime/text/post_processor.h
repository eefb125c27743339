// The "post_processor" of a tokenizer.json, as far as it adds tokens: what stands before and after
// the ids of every text.
#ifndef TRIREME_RUNTIME_TEXT_POST_PROCESSOR_H_
#define TRIREME_RUNTIME_TEXT_POST_PROCESSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace trireme::text {

struct SurroundingTokens {
  std::vector<int32_t> prefix_ids;
  std::vector<int32_t> suffix_ids;
};

// From a post_processor's JSON, null included. Known types: Sequence, TemplateProcessing, ByteLevel
// (which only moves offsets). Errors (InvalidArgument): any other type; a template without exactly
// one text, or with a token that its own list does not define or that is not below
// `vocabulary_size`; the message begins with `path`.
absl::StatusOr<SurroundingTokens> ReadPostProcessor(const nlohmann::json& spec,
                                                    const std::string& path,
                                                    int32_t vocabulary_size);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_POST_PROCESSOR_H_

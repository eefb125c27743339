// From text and conversations to token ids, with the model's own tokenizer and chat template. What
// a user, tool or assistant wrote never becomes a control token; only the template's literal text
// does.
#ifndef TRIREME_RUNTIME_SERVE_PROMPT_TEXT_H_
#define TRIREME_RUNTIME_SERVE_PROMPT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/serve/replica_facade.h"

namespace trireme::v1 {
class ChatInput;
class TextOptions;
}  // namespace trireme::v1

namespace trireme::serve {

struct RenderedChat {
  std::string text;
  std::vector<int32_t> token_ids;
};

// Errors of both: Unimplemented (the replica has no tokenizer or no template), InvalidArgument
// (BAD_TEMPLATE_INPUT: what the template refuses; BAD_PARAMETER: what cannot be encoded).
// Thread-safe; time grows with the text, so never in a reactor.
absl::StatusOr<std::vector<int32_t>> EncodeText(const ReplicaFacade& replica,
                                                absl::string_view text,
                                                const v1::TextOptions& options);

// `chat` has passed CheckChat.
absl::StatusOr<RenderedChat> EncodeChat(const ReplicaFacade& replica, const v1::ChatInput& chat);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_PROMPT_TEXT_H_

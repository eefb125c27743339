// The border check of requests: from a message of the wire to a schedule::Request, or every field
// at fault. Pure: no threads, clocks, tokenizers or sockets. Turning text into token ids is
// prompt_text's work; CheckPrompt holds the result against the context.
#ifndef TRIREME_RUNTIME_SERVE_VALIDATE_REQUEST_H_
#define TRIREME_RUNTIME_SERVE_VALIDATE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/schedule/request.h"
#include "runtime/serve/replica_facade.h"
#include "runtime/serve/violations.h"

// Named only, so that no protobuf header is needed here.
namespace trireme::v1 {
class ChatInput;
class Constraint;
class ExecuteRequest;
class GenerateRequest;
class Sampling;
class Stopping;
}  // namespace trireme::v1

namespace trireme::serve {

// What a valid Generate asks for.
struct ValidatedGenerate {
  schedule::Request request;  // the prompt is empty unless token ids were given; id may be empty
  int64_t choices = 1;
  bool seed_given = false;
  bool want_token_ids = true;
  bool want_bytes = false;
};

// One choice of a valid Execute.
struct ValidatedChoice {
  uint32_t choice = 0;
  std::vector<int32_t> emitted;
};

struct ValidatedExecute {
  schedule::Request request;  // complete but for emitted and choice
  std::vector<ValidatedChoice> choices;
};

// Errors: InvalidArgument or Unimplemented with all violations; NotFound (MODEL).
absl::StatusOr<ValidatedGenerate> ValidateGenerate(const v1::GenerateRequest& request,
                                                   const ModelInfo& model);
absl::StatusOr<ValidatedExecute> ValidateExecute(const v1::ExecuteRequest& request,
                                                 const ModelInfo& model);

// Parts of the above that other calls use too.
absl::Status CheckModelName(absl::string_view name, const ModelInfo& model);
// A request's id, a lease or a tenant: so many characters of A-Z a-z 0-9 . _ : / - (or none).
void CheckName(absl::string_view path, absl::string_view name, const RequestLimits& limits,
               Violations* violations);
void CheckChat(absl::string_view path, const v1::ChatInput& chat, const ModelInfo& model,
               Violations* violations);
void CheckText(absl::string_view path, absl::string_view text, const ModelInfo& model,
               Violations* violations);

// Invalid (BAD_TOKEN_ID) for the first id outside the vocabulary.
void CheckTokenIds(absl::string_view path, absl::Span<const int32_t> ids, const ModelInfo& model,
                   Violations* violations);

// The prompt as token ids against the context: at least one token, and room for one more.
absl::Status CheckPrompt(absl::string_view path, absl::Span<const int32_t> prompt,
                         const ModelInfo& model);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_VALIDATE_REQUEST_H_

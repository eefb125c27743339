// The client behind `trireme generate --endpoint`: asks a running service and streams its answer.
#ifndef TRIREME_LAUNCHER_REMOTE_GENERATE_H_
#define TRIREME_LAUNCHER_REMOTE_GENERATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/schedule/request.h"

namespace trireme {

struct RemoteMessage {
  std::string role;
  std::string content;
};

// What is unset is left to the server's model.
struct RemoteGenerateOptions {
  std::string endpoint;  // HOST:PORT
  std::string model;     // empty: the server's only one
  // One of these three.
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<RemoteMessage> messages;
  std::optional<int64_t> max_tokens;
  std::optional<float> temperature;
  std::optional<int64_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;
  bool want_prompt_token_ids = false;                 // costs one more call
  absl::Duration timeout = absl::InfiniteDuration();  // of the whole answer
  absl::Duration connect_timeout = absl::Seconds(10);
};

struct RemoteGenerateResult {
  std::string request_id;
  std::vector<int32_t> prompt_token_ids;  // when wanted, or given
  std::vector<int32_t> token_ids;
  std::string text;
  schedule::FinishReason finish_reason = schedule::FinishReason::kEos;
  int64_t prompt_tokens = 0;
  absl::Duration queue;
  absl::Duration first_token;  // from arrival at the server
  absl::Duration total;
};

// Blocks until the end. `on_text` (may be null) gets each piece of text as it comes, on the calling
// thread. Errors: the server's status with its reason; Unavailable naming the endpoint when it
// cannot be reached; DataLoss when the stream breaks the protocol or stops without its end.
absl::StatusOr<RemoteGenerateResult> GenerateRemotely(
    const RemoteGenerateOptions& options, const std::function<void(absl::string_view)>& on_text);

}  // namespace trireme

#endif  // TRIREME_LAUNCHER_REMOTE_GENERATE_H_

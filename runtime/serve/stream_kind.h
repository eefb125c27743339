// What differs between the calls that stream tokens (Generate, Execute): how a request is read and
// how events are written. How a stream lives is StreamCall's.
#ifndef TRIREME_RUNTIME_SERVE_STREAM_KIND_H_
#define TRIREME_RUNTIME_SERVE_STREAM_KIND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/engine/response_stream.h"
#include "runtime/schedule/request.h"
#include "runtime/serve/replica_facade.h"

namespace trireme::serve {

struct PreparedStream {
  std::string live_id;                               // unique among open streams
  bool resumable = false;                            // the client can name it after a cut
  std::string lease;                                 // under which the stream runs; empty: none
  std::vector<schedule::Request> requests;           // one for each choice, with ids of their own
  absl::Duration budget = absl::InfiniteDuration();  // in which the whole stream must end
};

// What IsQuick allows: some thousand token ids.
inline constexpr size_t kQuickBytesMax = size_t{16} << 10;

// One object for each call; IsQuick and Prepare come first, and no two calls at once. Each event is
// a serialized message with `seq`.
class StreamKind {
 public:
  virtual ~StreamKind() = default;

  // True when Prepare takes microseconds (few token ids, no text), so that it need not wait for the
  // threads that tokenize.
  virtual bool IsQuick(absl::string_view request_bytes) const = 0;
  virtual absl::StatusOr<PreparedStream> Prepare(absl::string_view request_bytes,
                                                 const ReplicaFacade& replica) = 0;
  virtual std::string QueuedEvent(uint64_t seq, int64_t position) = 0;
  // `fingerprint` is of whoever computes; empty: the replica's own.
  virtual std::string AcceptedEvent(uint64_t seq, absl::string_view fingerprint) = 0;
  virtual std::string TokensEvent(uint64_t seq, const schedule::Request& request,
                                  const engine::Delta& delta) = 0;
  // True when the text that comes with a choice's ending belongs into ChoiceFinishedEvent
  // (`text_tail`), not into the last TokensEvent.
  virtual bool EndsWithTextTail() const = 0;
  virtual std::string ChoiceFinishedEvent(uint64_t seq, const schedule::Request& request,
                                          const engine::Ending& ending,
                                          absl::string_view text_tail) = 0;
  // Of all choices, in the order of the requests.
  virtual std::string FinishedEvent(uint64_t seq, absl::Span<const engine::Ending> endings) = 0;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_STREAM_KIND_H_

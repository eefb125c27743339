// What goes over a control connection: small frames of one layout, all numbers little-endian.
//
//   u32 bytes that follow | u8 kind | u8 waiting | i32 code | i64 finished step | text to the end
//
// Frames come from another process and are checked: size, kind, and nothing is allocated beyond
// kControlFrameBytesMax.
#ifndef TRIREME_RUNTIME_COMM_CONTROL_MESSAGE_H_
#define TRIREME_RUNTIME_COMM_CONTROL_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::comm {

enum class ControlKind : uint8_t {
  kHeartbeat = 1,  // alive; finished_step and is_waiting hold
  kLeaving = 2,    // the last frame; code and text are the reason (code 0: an ordered end)
};

struct ControlMessage {
  ControlKind kind = ControlKind::kHeartbeat;
  bool is_waiting = false;
  int32_t code = 0;
  int64_t finished_step = 0;
  std::string text;  // a heartbeat's report or a reason; cut to what a frame holds
};

inline constexpr size_t kControlFrameBytesMax = 1024;
inline constexpr size_t kControlReportBytesMax = kControlFrameBytesMax - 18;  // of text

std::string EncodeControlMessage(const ControlMessage& message);

// Turns a stream of bytes back into messages. One thread.
class ControlDecoder {
 public:
  void Append(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // The next whole message, nothing when more bytes are needed. InvalidArgument for bytes that are
  // no frame: the connection is of no use any more.
  absl::StatusOr<std::optional<ControlMessage>> Next();

 private:
  std::string buffer_;
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_CONTROL_MESSAGE_H_

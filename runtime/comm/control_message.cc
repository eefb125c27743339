#include "runtime/comm/control_message.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace trireme::comm {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kFixedBytes = 1 + 1 + 4 + 8;
static_assert(kControlReportBytesMax == kControlFrameBytesMax - kLengthBytes - kFixedBytes);

void PutNumber(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

uint64_t TakeNumber(absl::string_view& in, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(in[i])) << (8 * i);
  }
  in.remove_prefix(bytes);
  return value;
}

}  // namespace

std::string EncodeControlMessage(const ControlMessage& message) {
  const size_t text_bytes =
      std::min(message.text.size(), kControlFrameBytesMax - kLengthBytes - kFixedBytes);
  std::string frame;
  PutNumber(frame, kFixedBytes + text_bytes, kLengthBytes);
  PutNumber(frame, static_cast<uint64_t>(message.kind), 1);
  PutNumber(frame, message.is_waiting ? 1 : 0, 1);
  PutNumber(frame, static_cast<uint32_t>(message.code), 4);
  PutNumber(frame, static_cast<uint64_t>(message.finished_step), 8);
  frame.append(message.text, 0, text_bytes);
  return frame;
}

absl::StatusOr<std::optional<ControlMessage>> ControlDecoder::Next() {
  if (buffer_.size() < kLengthBytes) {
    return std::nullopt;
  }
  absl::string_view in = buffer_;
  const uint64_t length = TakeNumber(in, kLengthBytes);
  if (length < kFixedBytes || length > kControlFrameBytesMax - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a control frame of %d bytes: wanted %d to %d", length, kFixedBytes,
                        kControlFrameBytesMax - kLengthBytes));
  }
  if (in.size() < length) {
    return std::nullopt;
  }
  in = in.substr(0, length);
  const uint64_t kind = TakeNumber(in, 1);
  if (kind != static_cast<uint64_t>(ControlKind::kHeartbeat) &&
      kind != static_cast<uint64_t>(ControlKind::kLeaving)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a control frame of unknown kind %d: wanted 1 or 2", kind));
  }
  ControlMessage message;
  message.kind = static_cast<ControlKind>(kind);
  message.is_waiting = TakeNumber(in, 1) != 0;
  message.code = static_cast<int32_t>(static_cast<uint32_t>(TakeNumber(in, 4)));
  message.finished_step = static_cast<int64_t>(TakeNumber(in, 8));
  message.text = std::string(in);
  buffer_.erase(0, kLengthBytes + length);
  return std::optional<ControlMessage>(std::move(message));
}

}  // namespace trireme::comm

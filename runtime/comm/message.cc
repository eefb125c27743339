#include "runtime/comm/message.h"

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"

namespace trireme::comm {
namespace {

absl::Span<const std::byte> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

absl::Span<std::byte> AsWritableBytes(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

absl::Span<std::byte> AsWritableBytes(int64_t& number) {
  return {reinterpret_cast<std::byte*>(&number), sizeof(number)};
}

absl::Status CheckLength(Communicator& communicator, int peer, int64_t length, int64_t bytes_max) {
  if (length >= 0 && length <= bytes_max) {
    return absl::OkStatus();
  }
  absl::Status status = absl::ResourceExhaustedError(absl::StrFormat(
      "rank %d announced a message of %d bytes, wanted at most %d", peer, length, bytes_max));
  communicator.Abort(status);
  return status;
}

}  // namespace

absl::Status SendMessage(Communicator& communicator, int peer, absl::string_view message) {
  auto length = static_cast<int64_t>(message.size());
  RETURN_IF_ERROR(communicator.Send(peer, AsWritableBytes(length)));
  return communicator.Send(peer, AsBytes(message));
}

absl::Status ReceiveMessage(Communicator& communicator, int peer, int64_t bytes_max,
                            std::string& message) {
  int64_t length = 0;
  RETURN_IF_ERROR(communicator.Receive(peer, AsWritableBytes(length)));
  RETURN_IF_ERROR(CheckLength(communicator, peer, length, bytes_max));
  message.resize(static_cast<size_t>(length));
  return communicator.Receive(peer, AsWritableBytes(message));
}

absl::Status BroadcastMessage(Communicator& communicator, int root, int64_t bytes_max,
                              std::string& message) {
  auto length = static_cast<int64_t>(message.size());
  RETURN_IF_ERROR(communicator.Broadcast(AsWritableBytes(length), root));
  RETURN_IF_ERROR(CheckLength(communicator, root, length, bytes_max));
  message.resize(static_cast<size_t>(length));
  return communicator.Broadcast(AsWritableBytes(message), root);
}

absl::StatusOr<std::vector<std::string>> GatherMessages(Communicator& communicator,
                                                        absl::string_view mine, int64_t bytes_max) {
  const auto ranks = static_cast<size_t>(communicator.size());
  auto length = static_cast<int64_t>(mine.size());
  std::vector<int64_t> lengths(ranks);
  RETURN_IF_ERROR(communicator.AllGather(
      AsWritableBytes(length),
      {reinterpret_cast<std::byte*>(lengths.data()), ranks * sizeof(int64_t)}));
  int64_t sum = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    RETURN_IF_ERROR(CheckLength(communicator, static_cast<int>(rank), lengths[rank], bytes_max));
    sum += lengths[rank];
  }
  std::string all(static_cast<size_t>(sum), '\0');
  RETURN_IF_ERROR(communicator.AllGatherVariable(AsBytes(mine), lengths, AsWritableBytes(all)));
  std::vector<std::string> messages;
  size_t offset = 0;
  for (const int64_t bytes : lengths) {
    messages.push_back(all.substr(offset, static_cast<size_t>(bytes)));
    offset += static_cast<size_t>(bytes);
  }
  return messages;
}

}  // namespace trireme::comm

#include "runtime/comm/peer_communicator.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/tree_sum.h"

namespace trireme::comm {

PeerCommunicator::PeerCommunicator(int rank, int size) : rank_(rank), size_(size) {
  CHECK(rank >= 0 && rank < size);
  sends_.reserve(static_cast<size_t>(size));
  receives_.reserve(static_cast<size_t>(size));
}

absl::Status PeerCommunicator::AllReduceSum(absl::Span<float> values) {
  if (!IsReduceSize(size_)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("AllReduceSum over %d ranks: wanted 1, 2, 4 or 8", size_));
  }
  RETURN_IF_ERROR(State());
  if (values.empty()) {
    return absl::OkStatus();
  }
  if (partner_values_.size() < values.size()) {
    partner_values_.resize(values.size());
  }
  const size_t bytes = values.size() * sizeof(float);
  for (int step = 1; step < size_; step *= 2) {
    const int partner = rank_ ^ step;
    const Outgoing send = {partner, {reinterpret_cast<const std::byte*>(values.data()), bytes}};
    const Incoming receive = {partner,
                              {reinterpret_cast<std::byte*>(partner_values_.data()), bytes}};
    RETURN_IF_ERROR(Transfer({&send, 1}, {&receive, 1}));
    const float* const mine = values.data();
    const float* const theirs = partner_values_.data();
    const float* const parts[] = {rank_ < partner ? mine : theirs, rank_ < partner ? theirs : mine};
    AddInTreeOrder(parts, static_cast<int64_t>(values.size()), values.data());
  }
  return absl::OkStatus();
}

// `byte_counts` is empty when every rank brings mine.size() bytes.
absl::Status PeerCommunicator::Gather(absl::Span<const std::byte> mine,
                                      absl::Span<const int64_t> byte_counts,
                                      absl::Span<std::byte> all) {
  sends_.clear();
  receives_.clear();
  size_t offset = 0;
  for (int peer = 0; peer < size_; ++peer) {
    const size_t count = byte_counts.empty()
                             ? mine.size()
                             : static_cast<size_t>(byte_counts[static_cast<size_t>(peer)]);
    const absl::Span<std::byte> place = all.subspan(offset, count);
    offset += count;
    if (peer == rank_) {
      if (!mine.empty() && mine.data() != place.data()) {
        std::memcpy(place.data(), mine.data(), mine.size());
      }
      continue;
    }
    if (!mine.empty()) {
      sends_.push_back({peer, mine});
    }
    if (!place.empty()) {
      receives_.push_back({peer, place});
    }
  }
  return sends_.empty() && receives_.empty() ? State() : Transfer(sends_, receives_);
}

absl::Status PeerCommunicator::AllGather(absl::Span<const std::byte> mine,
                                         absl::Span<std::byte> all) {
  CHECK_EQ(all.size(), mine.size() * static_cast<size_t>(size_));
  return Gather(mine, {}, all);
}

absl::Status PeerCommunicator::AllGatherVariable(absl::Span<const std::byte> mine,
                                                 absl::Span<const int64_t> byte_counts,
                                                 absl::Span<std::byte> all) {
  CHECK_EQ(byte_counts.size(), static_cast<size_t>(size_));
  CHECK_EQ(byte_counts[static_cast<size_t>(rank_)], static_cast<int64_t>(mine.size()));
  int64_t sum = 0;
  for (const int64_t count : byte_counts) {
    CHECK_GE(count, 0);
    sum += count;
  }
  CHECK_EQ(sum, static_cast<int64_t>(all.size()));
  return Gather(mine, byte_counts, all);
}

absl::Status PeerCommunicator::Broadcast(absl::Span<std::byte> bytes, int root) {
  CHECK(root >= 0 && root < size_);
  if (bytes.empty() || size_ == 1) {
    return State();
  }
  if (rank_ != root) {
    const Incoming receive = {root, bytes};
    return Transfer({}, {&receive, 1});
  }
  sends_.clear();
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) {
      sends_.push_back({peer, bytes});
    }
  }
  return Transfer(sends_, {});
}

absl::Status PeerCommunicator::Send(int peer, absl::Span<const std::byte> bytes) {
  CHECK(peer >= 0 && peer < size_ && peer != rank_);
  const Outgoing send = {peer, bytes};
  return Transfer({&send, 1}, {});
}

absl::Status PeerCommunicator::Receive(int peer, absl::Span<std::byte> bytes) {
  CHECK(peer >= 0 && peer < size_ && peer != rank_);
  const Incoming receive = {peer, bytes};
  return Transfer({}, {&receive, 1});
}

// Dissemination: after round l each rank has heard, directly or not, from 2^(l + 1) - 1 others.
absl::Status PeerCommunicator::Barrier() {
  RETURN_IF_ERROR(State());
  for (int distance = 1; distance < size_; distance *= 2) {
    const Outgoing send = {(rank_ + distance) % size_, {}};
    const Incoming receive = {(rank_ + size_ - distance) % size_, {}};
    RETURN_IF_ERROR(Transfer({&send, 1}, {&receive, 1}));
  }
  return absl::OkStatus();
}

}  // namespace trireme::comm

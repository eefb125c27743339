#include "runtime/comm/region_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/tree_sum.h"

namespace trireme::comm {
namespace {

enum class Verb : uint8_t { kNone, kAllReduceSum, kAllGather, kBroadcast, kBarrier };
constexpr std::array<const char*, 5> kVerbNames = {"nothing", "AllReduceSum", "AllGather",
                                                   "Broadcast", "Barrier"};

constexpr int64_t kSlotFloats = kSlotBytes / static_cast<int64_t>(sizeof(float));
// Up to here the second exchange of the two-shot costs more than what it saves
// (docs/benchmarks/comm.md).
constexpr int64_t kOneShotFloatsMax = 512;
// A long message is handed over in pieces, so that both sides copy at the same time.
constexpr int64_t kRingPieceBytes = kRingBytes / 4;

// What a rank does in a round: verb, root and the bytes of the whole collective in one word.
uint64_t Note(Verb verb, int root, int64_t bytes) {
  return static_cast<uint64_t>(bytes) << 16 | static_cast<uint64_t>(root) << 8 |
         static_cast<uint64_t>(verb);
}

std::string NoteText(uint64_t note) {
  const uint64_t verb = note & 0xff;
  return absl::StrFormat("%s of %d bytes with root %d",
                         verb < kVerbNames.size() ? kVerbNames[verb] : "an unknown verb",
                         note >> 16, note >> 8 & 0xff);
}

void Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0 && to != from) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

// The part of `count` values that `index` of `parts` works on; whole lines of 16 floats.
int64_t PartBegin(int64_t count, int parts, int index) {
  constexpr int64_t kLine = 16;
  const int64_t lines = (count + kLine - 1) / kLine;
  return std::min(count, lines * index / parts * kLine);
}

}  // namespace

RegionCommunicator::RegionCommunicator(Region region, int rank,
                                       std::function<absl::Status(int)> check_peer)
    : region_(std::move(region)), rank_(rank), check_peer_(std::move(check_peer)) {
  CHECK(rank >= 0 && rank < region_.ranks());
}

absl::Status RegionCommunicator::Wait(SharedWord& word, uint32_t target, int peer,
                                      SpinBudget& budget) {
  return WaitUntilAtLeast(word, target, budget, waiting_, [this, peer]() -> absl::Status {
    RETURN_IF_ERROR(region_.AbortReason());
    return check_peer_ ? check_peer_(peer) : absl::OkStatus();
  });
}

absl::Status RegionCommunicator::BeginRound() {
  RETURN_IF_ERROR(region_.AbortReason());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_) {
      RETURN_IF_ERROR(Wait(region_.rounds(peer).published, round_, peer, collective_spin_));
    }
  }
  ++round_;
  return absl::OkStatus();
}

void RegionCommunicator::PublishRound(uint64_t note) {
  Region::Rounds& mine = region_.rounds(rank_);
  mine.notes[round_ & 1] = note;
  Publish(mine.published, round_);
}

absl::Status RegionCommunicator::AwaitRound(int peer, uint64_t note) {
  Region::Rounds& rounds = region_.rounds(peer);
  RETURN_IF_ERROR(Wait(rounds.published, round_, peer, collective_spin_));
  const uint64_t peer_note = rounds.notes[round_ & 1];
  if (peer_note == note) {
    return absl::OkStatus();
  }
  absl::Status status =
      absl::InternalError(absl::StrFormat("ranks diverged: rank %d is in %s while rank %d is in %s",
                                          rank_, NoteText(note), peer, NoteText(peer_note)));
  Abort(status);
  return status;
}

absl::Status RegionCommunicator::AwaitRoundOfAll(uint64_t note) {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_) {
      RETURN_IF_ERROR(AwaitRound(peer, note));
    }
  }
  return absl::OkStatus();
}

absl::Status RegionCommunicator::AllReduceSum(absl::Span<float> values) {
  if (!IsReduceSize(size())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("AllReduceSum over %d ranks: wanted 1, 2, 4 or 8", size()));
  }
  RETURN_IF_ERROR(region_.AbortReason());
  if (size() == 1) {
    return absl::OkStatus();
  }
  const uint64_t note = Note(Verb::kAllReduceSum, 0, static_cast<int64_t>(values.size()) * 4);
  for (size_t begin = 0; begin < values.size(); begin += kSlotFloats) {
    const absl::Span<float> chunk = values.subspan(begin, kSlotFloats);
    const bool one_shot = static_cast<int64_t>(chunk.size()) <= kOneShotFloatsMax;
    RETURN_IF_ERROR(one_shot ? ReduceChunk(chunk, note) : ReduceChunkInParts(chunk, note));
  }
  return absl::OkStatus();
}

absl::Status RegionCommunicator::ReduceChunk(absl::Span<float> values, uint64_t note) {
  const auto count = static_cast<int64_t>(values.size());
  RETURN_IF_ERROR(BeginRound());
  Copy(region_.slot(rank_, round_), reinterpret_cast<const std::byte*>(values.data()), count * 4);
  PublishRound(note);
  RETURN_IF_ERROR(AwaitRoundOfAll(note));
  std::array<const float*, kReduceRanksMax> parts;
  for (int peer = 0; peer < size(); ++peer) {
    parts[static_cast<size_t>(peer)] = reinterpret_cast<const float*>(region_.slot(peer, round_));
  }
  parts[static_cast<size_t>(rank_)] = values.data();
  AddInTreeOrder({parts.data(), static_cast<size_t>(size())}, count, values.data());
  return absl::OkStatus();
}

// A rank hands the others their parts in its own slot, and gets them back as sums in the same
// place: a line of memory goes to one other core and back. It is far cheaper to change a line that
// was just read than one that other cores have read since (docs/benchmarks/comm.md).
absl::Status RegionCommunicator::ReduceChunkInParts(absl::Span<float> values, uint64_t note) {
  const auto count = static_cast<int64_t>(values.size());
  const int64_t begin = PartBegin(count, size(), rank_);
  const int64_t end = PartBegin(count, size(), rank_ + 1);
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  RETURN_IF_ERROR(BeginRound());
  std::byte* const slot = region_.slot(rank_, round_);
  Copy(slot, bytes, begin * 4);
  Copy(slot + end * 4, bytes + end * 4, (count - end) * 4);
  PublishRound(note);
  RETURN_IF_ERROR(AwaitRoundOfAll(note));
  std::array<float*, kReduceRanksMax> parts;
  for (int peer = 0; peer < size(); ++peer) {
    parts[static_cast<size_t>(peer)] = reinterpret_cast<float*>(region_.slot(peer, round_)) + begin;
  }
  parts[static_cast<size_t>(rank_)] = values.data() + begin;
  ReplaceByTreeSum({parts.data(), static_cast<size_t>(size())}, end - begin);
  RETURN_IF_ERROR(BeginRound());
  PublishRound(note);
  RETURN_IF_ERROR(AwaitRoundOfAll(note));
  Copy(bytes, slot, begin * 4);
  Copy(bytes + end * 4, slot + end * 4, (count - end) * 4);
  return absl::OkStatus();
}

struct RegionCommunicator::GatherPlan {
  absl::Span<const int64_t> byte_counts;  // [ranks], or empty when all bring uniform_bytes
  int64_t uniform_bytes;

  int64_t Count(int rank) const {
    return byte_counts.empty() ? uniform_bytes : byte_counts[static_cast<size_t>(rank)];
  }
};

absl::Status RegionCommunicator::Gather(absl::Span<const std::byte> mine, const GatherPlan& plan,
                                        absl::Span<std::byte> all) {
  const uint64_t note = Note(Verb::kAllGather, 0, static_cast<int64_t>(all.size()));
  int64_t longest = 0;
  int64_t my_offset = 0;
  for (int peer = 0; peer < size(); ++peer) {
    longest = std::max(longest, plan.Count(peer));
    my_offset += peer < rank_ ? plan.Count(peer) : 0;
  }
  RETURN_IF_ERROR(region_.AbortReason());
  Copy(all.data() + my_offset, mine.data(), static_cast<int64_t>(mine.size()));
  for (int64_t begin = 0; begin < longest && size() > 1; begin += kSlotBytes) {
    const auto piece = [&plan, begin](int rank) {
      return std::clamp(plan.Count(rank) - begin, int64_t{0}, kSlotBytes);
    };
    RETURN_IF_ERROR(BeginRound());
    Copy(region_.slot(rank_, round_), mine.data() + begin, piece(rank_));
    PublishRound(note);
    RETURN_IF_ERROR(AwaitRoundOfAll(note));
    int64_t offset = begin;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank_) {
        Copy(all.data() + offset, region_.slot(peer, round_), piece(peer));
      }
      offset += plan.Count(peer);
    }
  }
  return absl::OkStatus();
}

absl::Status RegionCommunicator::AllGather(absl::Span<const std::byte> mine,
                                           absl::Span<std::byte> all) {
  CHECK_EQ(all.size(), mine.size() * static_cast<size_t>(size()));
  return Gather(mine, {.byte_counts = {}, .uniform_bytes = static_cast<int64_t>(mine.size())}, all);
}

absl::Status RegionCommunicator::AllGatherVariable(absl::Span<const std::byte> mine,
                                                   absl::Span<const int64_t> byte_counts,
                                                   absl::Span<std::byte> all) {
  CHECK_EQ(byte_counts.size(), static_cast<size_t>(size()));
  CHECK_EQ(byte_counts[static_cast<size_t>(rank_)], static_cast<int64_t>(mine.size()));
  int64_t sum = 0;
  for (const int64_t count : byte_counts) {
    CHECK_GE(count, 0);
    sum += count;
  }
  CHECK_EQ(sum, static_cast<int64_t>(all.size()));
  return Gather(mine, {.byte_counts = byte_counts, .uniform_bytes = 0}, all);
}

absl::Status RegionCommunicator::Broadcast(absl::Span<std::byte> bytes, int root) {
  CHECK(root >= 0 && root < size());
  RETURN_IF_ERROR(region_.AbortReason());
  const uint64_t note = Note(Verb::kBroadcast, root, static_cast<int64_t>(bytes.size()));
  for (size_t begin = 0; begin < bytes.size() && size() > 1; begin += kSlotBytes) {
    const absl::Span<std::byte> chunk = bytes.subspan(begin, kSlotBytes);
    const auto chunk_bytes = static_cast<int64_t>(chunk.size());
    RETURN_IF_ERROR(BeginRound());
    if (rank_ == root) {
      Copy(region_.slot(rank_, round_), chunk.data(), chunk_bytes);
    }
    PublishRound(note);
    if (rank_ != root) {
      RETURN_IF_ERROR(AwaitRound(root, note));
      Copy(chunk.data(), region_.slot(root, round_), chunk_bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status RegionCommunicator::Barrier() {
  RETURN_IF_ERROR(region_.AbortReason());
  if (size() == 1) {
    return absl::OkStatus();
  }
  const uint64_t note = Note(Verb::kBarrier, 0, 0);
  RETURN_IF_ERROR(BeginRound());
  PublishRound(note);
  return AwaitRoundOfAll(note);
}

class RegionCommunicator::RingWriter {
 public:
  RingWriter(RegionCommunicator& communicator, int peer)
      : communicator_(communicator),
        peer_(peer),
        ring_(communicator.region_.ring(communicator.rank_, peer)),
        data_(communicator.region_.ring_bytes(communicator.rank_, peer)),
        written_(ring_.written.value.load(std::memory_order_relaxed)) {}

  absl::Status Write(absl::Span<const std::byte> bytes) {
    size_t done = 0;
    while (done < bytes.size()) {
      const uint32_t used = written_ - ring_.read.value.load(std::memory_order_acquire);
      const auto free_bytes = static_cast<int64_t>(kRingBytes - used);
      if (free_bytes == 0) {
        Finish();
        const auto oldest = static_cast<uint32_t>(written_ - kRingBytes);
        RETURN_IF_ERROR(
            communicator_.Wait(ring_.read, oldest + 1, peer_, communicator_.send_spin_));
        continue;
      }
      const int64_t position = written_ % kRingBytes;
      const int64_t piece = std::min({free_bytes, static_cast<int64_t>(bytes.size() - done),
                                      kRingBytes - position, kRingPieceBytes});
      Copy(data_ + position, bytes.data() + done, piece);
      written_ += static_cast<uint32_t>(piece);
      done += static_cast<size_t>(piece);
      if (piece == kRingPieceBytes) {
        Finish();
      }
    }
    return absl::OkStatus();
  }

  void Finish() { Publish(ring_.written, written_); }

 private:
  RegionCommunicator& communicator_;
  const int peer_;
  Region::Ring& ring_;
  std::byte* const data_;
  uint32_t written_;
};

absl::Status RegionCommunicator::Send(int peer, absl::Span<const std::byte> bytes) {
  CHECK(peer >= 0 && peer < size() && peer != rank_);
  RETURN_IF_ERROR(region_.AbortReason());
  const uint64_t length = bytes.size();
  RingWriter writer(*this, peer);
  RETURN_IF_ERROR(writer.Write({reinterpret_cast<const std::byte*>(&length), sizeof(length)}));
  RETURN_IF_ERROR(writer.Write(bytes));
  writer.Finish();
  return absl::OkStatus();
}

absl::Status RegionCommunicator::Read(int peer, absl::Span<std::byte> bytes) {
  Region::Ring& ring = region_.ring(peer, rank_);
  const std::byte* const data = region_.ring_bytes(peer, rank_);
  uint32_t read = ring.read.value.load(std::memory_order_relaxed);
  size_t done = 0;
  while (done < bytes.size()) {
    RETURN_IF_ERROR(Wait(ring.written, read + 1, peer, receive_spin_));
    const int64_t available = ring.written.value.load(std::memory_order_acquire) - read;
    const int64_t position = read % kRingBytes;
    const int64_t piece =
        std::min({available, static_cast<int64_t>(bytes.size() - done), kRingBytes - position});
    Copy(bytes.data() + done, data + position, piece);
    read += static_cast<uint32_t>(piece);
    done += static_cast<size_t>(piece);
    Publish(ring.read, read);
  }
  return absl::OkStatus();
}

absl::Status RegionCommunicator::Receive(int peer, absl::Span<std::byte> bytes) {
  CHECK(peer >= 0 && peer < size() && peer != rank_);
  RETURN_IF_ERROR(region_.AbortReason());
  uint64_t length = 0;
  RETURN_IF_ERROR(Read(peer, {reinterpret_cast<std::byte*>(&length), sizeof(length)}));
  if (length != bytes.size()) {
    absl::Status status = absl::InternalError(
        absl::StrFormat("ranks diverged: rank %d sent %d bytes where rank %d receives %d", peer,
                        length, rank_, bytes.size()));
    Abort(status);
    return status;
  }
  return Read(peer, bytes);
}

void RegionCommunicator::Abort(absl::Status reason) { region_.Abort(reason); }

}  // namespace trireme::comm

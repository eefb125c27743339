// Region: the memory through which ranks of one process (Thread) or one host (Shm) talk.
//
// It holds, for each rank, a round counter with a note of what the rank does in that round and two
// slots for data; for each ordered pair of ranks, a ring of bytes; and the reason why the group
// ended, if it did. Collectives run in rounds: a rank fills its slot, publishes the round, and
// reads the slots of others once they published it. A rank enters round r only when all others
// have published r - 1, hence have left r - 2, so two slots are enough. Until it publishes the next
// round, a rank may also change what a slot holds for it alone.
#ifndef TRIREME_RUNTIME_COMM_REGION_H_
#define TRIREME_RUNTIME_COMM_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "runtime/comm/shared_word.h"

namespace trireme::comm {

// More ranks than one host has use for; bounds the size of a region (rings grow with its square).
inline constexpr int kRegionRanksMax = 64;
// Half of a small second-level cache, so that a round's data is read while it is still near.
inline constexpr int64_t kSlotBytes = 256 * 1024;
inline constexpr int64_t kRingBytes = 64 * 1024;
static_assert((kRingBytes & (kRingBytes - 1)) == 0, "ring positions wrap with the counter");

class Region {
 public:
  // Bytes that a region for `ranks` (1 to kRegionRanksMax) needs.
  static int64_t Bytes(int ranks);

  // A view of `memory`: Bytes(ranks) bytes, aligned to 64, zero when the first view is made.
  // Shared ownership: each communicator keeps the memory alive for as long as it may touch it.
  Region(std::shared_ptr<std::byte> memory, int ranks);

  int ranks() const { return ranks_; }

  // What a rank does in a round, for others to compare with what they do.
  struct alignas(64) Rounds {
    SharedWord published;  // the last round that the rank has filled its slot for
    uint64_t notes[2];     // by round & 1
  };
  struct Ring {
    alignas(64) SharedWord written;  // bytes ever written, wrapping
    alignas(64) SharedWord read;     // bytes ever read, wrapping
  };

  Rounds& rounds(int rank) { return rounds_[rank]; }
  std::byte* slot(int rank, uint32_t round) {
    return slots_ + (rank * 2 + static_cast<int>(round & 1)) * kSlotBytes;
  }
  Ring& ring(int from, int to) { return rings_[from * ranks_ + to]; }
  std::byte* ring_bytes(int from, int to) {
    return ring_data_ + static_cast<int64_t>(from * ranks_ + to) * kRingBytes;
  }

  // How many ranks have attached (Shm's start).
  SharedWord& attached();

  // Records the first reason (not OK; cut to 1000 bytes) and wakes every sleeper of every rank.
  void Abort(const absl::Status& reason);

  // OK, or the recorded reason. One load while OK.
  absl::Status AbortReason() const;

 private:
  struct Header;

  std::shared_ptr<std::byte> memory_;
  int ranks_;
  Header* header_;
  Rounds* rounds_;        // [ranks]
  Ring* rings_;           // [ranks, ranks], from major
  std::byte* slots_;      // [ranks, 2, kSlotBytes]
  std::byte* ring_data_;  // [ranks, ranks, kRingBytes]
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_REGION_H_

#include "runtime/comm/region.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"
#include "runtime/base/check.h"

namespace trireme::comm {
namespace {

constexpr uint32_t kNotAborted = 0;
constexpr uint32_t kReasonBeingWritten = 1;
constexpr uint32_t kReasonWritten = 2;
constexpr size_t kReasonBytesMax = 1000;
// Writing a reason takes less than a microsecond, unless its thread loses its core in between.
constexpr int kReasonTurns = 100;

}  // namespace

struct Region::Header {
  alignas(64) SharedWord attached;
  alignas(64) std::atomic<uint32_t> abort_stage;
  uint32_t reason_code;
  uint32_t reason_bytes;
  char reason[kReasonBytesMax];
};

int64_t Region::Bytes(int ranks) {
  CHECK(ranks >= 1 && ranks <= kRegionRanksMax);
  const int64_t count = ranks;
  return static_cast<int64_t>(sizeof(Header)) + count * static_cast<int64_t>(sizeof(Rounds)) +
         count * count * static_cast<int64_t>(sizeof(Ring)) + count * 2 * kSlotBytes +
         count * count * kRingBytes;
}

Region::Region(std::shared_ptr<std::byte> memory, int ranks)
    : memory_(std::move(memory)), ranks_(ranks) {
  static_assert(sizeof(Header) % 64 == 0 && sizeof(Rounds) % 64 == 0 && sizeof(Ring) % 64 == 0);
  CHECK_EQ(reinterpret_cast<uintptr_t>(memory_.get()) % 64, 0U);
  const int64_t count = ranks;
  std::byte* at = memory_.get();
  header_ = reinterpret_cast<Header*>(at);
  at += sizeof(Header);
  rounds_ = reinterpret_cast<Rounds*>(at);
  at += count * static_cast<int64_t>(sizeof(Rounds));
  rings_ = reinterpret_cast<Ring*>(at);
  at += count * count * static_cast<int64_t>(sizeof(Ring));
  slots_ = at;
  ring_data_ = at + count * 2 * kSlotBytes;
}

SharedWord& Region::attached() { return header_->attached; }

void Region::Abort(const absl::Status& reason) {
  CHECK(!reason.ok());
  uint32_t expected = kNotAborted;
  if (!header_->abort_stage.compare_exchange_strong(expected, kReasonBeingWritten)) {
    return;
  }
  const absl::string_view text = reason.message();
  const size_t text_bytes = std::min(text.size(), kReasonBytesMax);
  header_->reason_code = static_cast<uint32_t>(reason.raw_code());
  header_->reason_bytes = static_cast<uint32_t>(text_bytes);
  std::memcpy(header_->reason, text.data(), text_bytes);
  header_->abort_stage.store(kReasonWritten, std::memory_order_seq_cst);
  WakeSleepers(header_->attached);
  for (int rank = 0; rank < ranks_; ++rank) {
    WakeSleepers(rounds_[rank].published);
    for (int to = 0; to < ranks_; ++to) {
      WakeSleepers(ring(rank, to).written);
      WakeSleepers(ring(rank, to).read);
    }
  }
}

absl::Status Region::AbortReason() const {
  uint32_t stage = header_->abort_stage.load(std::memory_order_acquire);
  for (int turn = 0; stage == kReasonBeingWritten && turn < kReasonTurns; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stage = header_->abort_stage.load(std::memory_order_acquire);
  }
  switch (stage) {
    case kNotAborted:
      return absl::OkStatus();
    case kReasonWritten: {
      const size_t text_bytes = std::min<size_t>(header_->reason_bytes, kReasonBytesMax);
      const auto code = static_cast<absl::StatusCode>(header_->reason_code);
      return absl::Status(code, absl::string_view(header_->reason, text_bytes));
    }
    default:
      // The aborting rank died while it wrote.
      return absl::UnavailableError("the group was aborted by another rank");
  }
}

}  // namespace trireme::comm

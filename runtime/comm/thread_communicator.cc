#include "runtime/comm/thread_communicator.h"

#include <sys/mman.h>

#include "absl/strings/str_format.h"
#include "runtime/comm/region.h"
#include "runtime/comm/region_communicator.h"

namespace trireme::comm {

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> MakeThreadCommunicators(int size) {
  if (size < 1 || size > kRegionRanksMax) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a group of %d thread ranks: wanted 1 to %d; use fewer ranks", size, kRegionRanksMax));
  }
  const auto bytes = static_cast<size_t>(Region::Bytes(size));
  // Mapped, not allocated: the rings of pairs that never talk take no memory.
  void* const address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "no memory for the exchange of %d thread ranks: wanted %d bytes", size, bytes));
  }
  const std::shared_ptr<std::byte> memory(static_cast<std::byte*>(address),
                                          [bytes](std::byte* mapped) { ::munmap(mapped, bytes); });
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(
        std::make_unique<RegionCommunicator>(Region(memory, size), rank, nullptr));
  }
  return communicators;
}

}  // namespace trireme::comm

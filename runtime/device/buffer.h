// Memory that a rank takes once at start and keeps: weights, KV, workspaces.
#ifndef TRIREME_RUNTIME_DEVICE_BUFFER_H_
#define TRIREME_RUNTIME_DEVICE_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace trireme::device {

// Owns zeroed memory, aligned to 2 MiB pages, which are asked for; moves, never copies. The pages
// are the kernel's to give: they are touched by whoever writes them first (NUMA placement).
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  // ResourceExhausted, naming `purpose`, the bytes wanted and the bytes available, when the host
  // does not have them.
  static absl::StatusOr<DeviceBuffer> Create(int64_t size_bytes, absl::string_view purpose);

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  DeviceBuffer(std::byte* data, int64_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

// Bytes that this host can still give to programs, reclaimable caches included; at most what the
// control group allows.
int64_t AvailableMemoryBytes();

}  // namespace trireme::device

#endif  // TRIREME_RUNTIME_DEVICE_BUFFER_H_

#include "runtime/device/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace trireme::device {
namespace {

constexpr int64_t kPageBytes = int64_t{2} << 20;

int64_t RoundUp(int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// "MemAvailable:   123 kB" of /proc/meminfo, in bytes.
int64_t MemoryAvailableOnHost() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") {
      return kibibytes * 1024;
    }
    std::getline(file, unit);
  }
  return std::numeric_limits<int64_t>::max();
}

// What the control group of this process (version 2) still allows.
int64_t MemoryLeftInControlGroup() {
  std::ifstream maximum_file("/sys/fs/cgroup/memory.max");
  std::ifstream current_file("/sys/fs/cgroup/memory.current");
  std::string maximum_text;
  int64_t maximum = 0;
  int64_t current = 0;
  if (!(maximum_file >> maximum_text) || !absl::SimpleAtoi(maximum_text, &maximum) ||
      !(current_file >> current)) {
    return std::numeric_limits<int64_t>::max();
  }
  return std::max<int64_t>(0, maximum - current);
}

}  // namespace

int64_t AvailableMemoryBytes() {
  return std::min(MemoryAvailableOnHost(), MemoryLeftInControlGroup());
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) {
    ::munmap(data_, static_cast<size_t>(RoundUp(size_bytes_)));
  }
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Create(int64_t size_bytes, absl::string_view purpose) {
  if (size_bytes <= 0) {
    return DeviceBuffer();
  }
  const int64_t available_bytes = AvailableMemoryBytes();
  if (size_bytes > available_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s needs %d bytes, but this host has %d available; use more ranks, a "
                        "shorter context or fewer bits per weight",
                        purpose, size_bytes, available_bytes));
  }
  // One page more than needed, so that the part kept can begin at a page border.
  const int64_t kept_bytes = RoundUp(size_bytes);
  const size_t mapped_bytes = static_cast<size_t>(kept_bytes + kPageBytes);
  void* const mapped =
      ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrFormat("%s: mapping %d bytes failed: %s", purpose,
                                                        mapped_bytes, std::strerror(errno)));
  }
  std::byte* const begin = static_cast<std::byte*>(mapped);
  const int64_t head_bytes =
      (kPageBytes - static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % kPageBytes)) %
      kPageBytes;
  if (head_bytes > 0) {
    ::munmap(begin, static_cast<size_t>(head_bytes));
  }
  if (head_bytes < kPageBytes) {
    ::munmap(begin + head_bytes + kept_bytes, static_cast<size_t>(kPageBytes - head_bytes));
  }
  ::madvise(begin + head_bytes, static_cast<size_t>(kept_bytes), MADV_HUGEPAGE);  // a wish only
  return DeviceBuffer(begin + head_bytes, size_bytes);
}

}  // namespace trireme::device

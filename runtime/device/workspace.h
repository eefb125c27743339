// Cuts one buffer into the arrays of a step: first a pass that counts, then a pass that hands out.
#ifndef TRIREME_RUNTIME_DEVICE_WORKSPACE_H_
#define TRIREME_RUNTIME_DEVICE_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

namespace trireme::device {

// A bump allocator over memory that somebody else owns. With null memory it only counts, so the
// same code plans and places.
class WorkspaceCutter {
 public:
  explicit WorkspaceCutter(std::byte* memory) : memory_(memory) {}

  // `count` values of T, aligned to 64 bytes; null while counting.
  template <typename T>
  T* Take(int64_t count) {
    const int64_t offset = used_bytes_;
    used_bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + offset);
  }

  int64_t used_bytes() const { return used_bytes_; }

 private:
  std::byte* const memory_;
  int64_t used_bytes_ = 0;
};

}  // namespace trireme::device

#endif  // TRIREME_RUNTIME_DEVICE_WORKSPACE_H_

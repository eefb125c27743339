// Entry point for fuzzers over safetensors headers: reads the bytes, then each tensor's ends, where
// a wrong extent shows.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/weights/safetensors_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto entries = trireme::weights::ParseSafetensors("fuzz", absl::MakeConstSpan(data, size));
  if (!entries.ok()) {
    CHECK(!entries.status().message().empty());
    return 0;
  }
  // The data lie behind the header, whose length the first eight bytes say.
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, data, sizeof(header_bytes));
  const uint8_t* const tensors = data + sizeof(header_bytes) + header_bytes;
  const int64_t tensors_bytes = data + size - tensors;
  int64_t previous_end = 0;
  for (const trireme::weights::SafetensorsEntry& entry : *entries) {
    CHECK(entry.dtype != nullptr);
    CHECK_LE(previous_end, entry.begin);
    CHECK_LE(entry.begin, entry.end);
    CHECK_LE(entry.end, tensors_bytes);
    if (entry.begin < entry.end) {
      [[maybe_unused]] volatile uint8_t end = tensors[entry.begin];
      end = tensors[entry.end - 1];
    }
    previous_end = entry.end;
  }
  return 0;
}

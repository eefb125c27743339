// Entry point for fuzzers over safetensors headers: reads the bytes, then each tensor's ends, where
// a wrong extent shows.
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/weights/safetensors_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto entries = trireme::weights::ParseSafetensors("fuzz", absl::MakeConstSpan(data, size));
  if (!entries.ok()) {
    CHECK(!entries.status().message().empty());
    return 0;
  }
  // The data lie behind the header, whose length is the first eight bytes.
  int64_t data_bytes = 0;
  for (const trireme::weights::SafetensorsEntry& entry : *entries) {
    CHECK_GE(entry.begin, 0);
    CHECK_LE(entry.begin, entry.end);
    CHECK_LE(data_bytes, entry.begin);
    data_bytes = entry.end;
    CHECK(entry.dtype != nullptr);
  }
  CHECK_LE(data_bytes, static_cast<int64_t>(size) - 8);
  [[maybe_unused]] volatile uint8_t last = data[size - static_cast<size_t>(data_bytes > 0)];
  return 0;
}

// Entry point for fuzzers over GGUF headers: opens the bytes, then uses everything that opened.
// With clang: clang++ -fsanitize=fuzzer,address,undefined. Without it, replay.cc is its main().
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/weights/describe.h"
#include "runtime/weights/gguf.h"

namespace {

using trireme::weights::GgufFile;

// Reads the ends of each tensor, where a wrong extent shows.
uint32_t TouchTensors(const GgufFile& file) {
  uint32_t sum = 0;
  for (const trireme::weights::GgufTensor& tensor : file.tensors()) {
    const absl::Span<const uint8_t> data = file.Data(tensor);
    CHECK_EQ(static_cast<int64_t>(data.size()), tensor.size_bytes);
    if (!data.empty()) {
      sum += uint32_t{data.front()} + uint32_t{data.back()};
    }
    CHECK(file.FindTensor(tensor.name) == &tensor);
  }
  return sum;
}

void UseGetters(const GgufFile& file) {
  for (const trireme::weights::GgufEntry& entry : file.metadata().entries()) {
    CHECK(file.metadata().Find(entry.key) == &entry);
    (void)file.metadata().GetInteger(entry.key);
    (void)file.metadata().GetFloat(entry.key);
    (void)file.metadata().GetBool(entry.key);
    (void)file.metadata().GetString(entry.key);
    (void)file.metadata().GetIntegerArray(entry.key);
    (void)file.metadata().GetFloatArray(entry.key);
    (void)file.metadata().GetBoolArray(entry.key);
    (void)file.metadata().GetStringArray(entry.key);
    (void)file.metadata().GetIntegerPerLayer(entry.key, 2);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = GgufFile::FromBytes("fuzz", absl::MakeConstSpan(data, size));
  if (!file.ok()) {
    CHECK(!file.status().message().empty());
    return 0;
  }
  UseGetters(**file);
  [[maybe_unused]] volatile uint32_t sum = TouchTensors(**file);
  CHECK(!trireme::weights::DescribeAsText(**file).empty());
  CHECK(!trireme::weights::DescribeAsJson(**file).empty());
  return 0;
}

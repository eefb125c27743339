// Entry point for fuzzers over config.json: its values, read by name, and the spec that the family
// makes of them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/weights/checkpoint.h"
#include "tests/fuzz/file_folder.h"

namespace {

const trireme::FileFolder& Folder() {
  static const trireme::FileFolder folder;
  static const bool is_written = [] {
    const std::string header = "{}";
    folder.Write("model.safetensors", std::string("\x02\0\0\0\0\0\0\0", 8) + header);
    return true;
  }();
  (void)is_written;
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const trireme::FileFolder& folder = Folder();
  folder.Write("config.json", absl::MakeConstSpan(data, size));
  const auto checkpoint = trireme::weights::Checkpoint::Open(folder.path());
  if (!checkpoint.ok()) {
    CHECK(!checkpoint.status().message().empty());
    return 0;
  }
  CHECK_GT((*checkpoint)->model_spec().vocabulary, 0);
  return 0;
}

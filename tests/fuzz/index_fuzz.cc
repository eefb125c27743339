// Entry point for fuzzers over model.safetensors.index.json, beside a config.json and one file of
// weights with a single tensor.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/weights/hugging_face_checkpoint.h"
#include "tests/fuzz/file_folder.h"

namespace {

constexpr char kIndexName[] = "model.safetensors.index.json";

const trireme::FileFolder& Folder() {
  static const trireme::FileFolder folder;
  static const bool is_written = [] {
    folder.Write("config.json", R"({"model_type": "llama"})");
    const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    folder.Write("model-00001-of-00002.safetensors", file + header + std::string(4, '\0'));
    return true;
  }();
  (void)is_written;
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const trireme::FileFolder& folder = Folder();
  folder.Write(kIndexName, absl::MakeConstSpan(data, size));
  const auto checkpoint =
      trireme::weights::HuggingFaceCheckpoint::Open(folder.path() + "/" + kIndexName);
  CHECK(checkpoint.ok() || !checkpoint.status().message().empty());
  return 0;
}

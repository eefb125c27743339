// Writes GGUF files field by field, right ones and wrong ones, for tests of readers.
#ifndef TRIREME_TESTS_SUPPORT_GGUF_BUILDER_H_
#define TRIREME_TESTS_SUPPORT_GGUF_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace trireme {

template <typename Number>
std::string Encoded(Number number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}
inline std::string EncodedString(absl::string_view text) {
  return absl::StrCat(Encoded<uint64_t>(text.size()), text);
}
// The value of an array without its value type: element type, count, elements.
inline std::string EncodedArray(uint32_t element_type, uint64_t count, absl::string_view elements) {
  return absl::StrCat(Encoded(element_type), Encoded(count), elements);
}

class GgufBuilder {
 public:
  GgufBuilder& Version(uint32_t version) {
    version_ = version;
    return *this;
  }
  // `value` as encoded by the functions above.
  GgufBuilder& Entry(absl::string_view key, uint32_t type, absl::string_view value) {
    absl::StrAppend(&entries_, EncodedString(key), Encoded(type), value);
    ++entry_count_;
    return *this;
  }
  GgufBuilder& String(absl::string_view key, absl::string_view text) {
    return Entry(key, 8, EncodedString(text));
  }
  GgufBuilder& Uint32(absl::string_view key, uint32_t number) {
    return Entry(key, 4, Encoded(number));
  }
  GgufBuilder& Tensor(absl::string_view name, const std::vector<uint64_t>& dimensions,
                      uint32_t type, uint64_t offset) {
    absl::StrAppend(&tensors_, EncodedString(name),
                    Encoded(static_cast<uint32_t>(dimensions.size())));
    for (const uint64_t dimension : dimensions) {
      absl::StrAppend(&tensors_, Encoded(dimension));
    }
    absl::StrAppend(&tensors_, Encoded(type), Encoded(offset));
    ++tensor_count_;
    return *this;
  }

  // Header, records, and `data` at the next multiple of `alignment`.
  std::string Build(absl::string_view data = "", size_t alignment = 32) const {
    std::string file = absl::StrCat("GGUF", Encoded(version_), Encoded(tensor_count_),
                                    Encoded(entry_count_), entries_, tensors_);
    if (tensor_count_ > 0) {
      file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    }
    return absl::StrCat(file, data);
  }

 private:
  uint32_t version_ = 3;
  uint64_t entry_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::string entries_;
  std::string tensors_;
};

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_GGUF_BUILDER_H_

// Copies of a GGUF model in which single floats are others.
#ifndef TRIREME_TESTS_SUPPORT_DAMAGED_MODEL_H_
#define TRIREME_TESTS_SUPPORT_DAMAGED_MODEL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/scalar_types.h"
#include "runtime/base/check.h"
#include "runtime/weights/gguf.h"
#include "tests/support/gguf_fixtures.h"

namespace trireme {

struct Damage {
  std::string tensor;  // of type F32, F16 or BF16
  int64_t row = 0;
  int64_t column = 0;
  float value = 0;
};

// The copy's path, in the test's temporary folder; the next copy replaces it.
inline std::string DamagedModel(const std::string& path, const Damage& damage) {
  const auto file = weights::GgufFile::Open(path);
  CHECK(file.ok());
  const weights::GgufTensor* const tensor = (*file)->FindTensor(damage.tensor);
  CHECK(tensor != nullptr);
  const int64_t element_bytes = tensor->size_bytes / tensor->elements;
  std::string content = ReadFile(path);
  char* const target = content.data() + tensor->data_offset +
                       (damage.row * tensor->dimensions[0] + damage.column) * element_bytes;
  const std::string type = tensor->type->name;
  const uint16_t half =
      type == "BF16" ? kernels::FloatToBFloat16(damage.value) : kernels::FloatToHalf(damage.value);
  if (element_bytes == sizeof(half)) {
    CHECK(type == "BF16" || type == "F16");
    std::memcpy(target, &half, sizeof(half));
  } else {
    CHECK(type == "F32");
    std::memcpy(target, &damage.value, sizeof(damage.value));
  }
  const std::string copy = absl::StrCat(::testing::TempDir(), "/damaged.gguf");
  std::ofstream(copy, std::ios::binary | std::ios::trunc) << content;
  return copy;
}

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_DAMAGED_MODEL_H_

#include "tests/support/safetensors_reader.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/check.h"

namespace trireme::testing {

std::map<std::string, ReadTensor> ReadSafetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  uint64_t header_bytes = 0;
  CHECK_GE(bytes.size(), sizeof(header_bytes));
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  std::map<std::string, ReadTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      continue;
    }
    ReadTensor& tensor = tensors[name];
    tensor.shape = entry["shape"].get<std::vector<int64_t>>();
    const size_t begin = entry["data_offsets"][0];
    const size_t end = entry["data_offsets"][1];
    const char* const data = bytes.data() + 8 + header_bytes + begin;
    CHECK_LE(8 + header_bytes + end, bytes.size());
    if (entry["dtype"] == "F32") {
      tensor.floats.resize((end - begin) / sizeof(float));
      std::memcpy(tensor.floats.data(), data, end - begin);
    } else if (entry["dtype"] == "I32") {
      tensor.integers.resize((end - begin) / sizeof(int32_t));
      std::memcpy(tensor.integers.data(), data, end - begin);
    }
  }
  return tensors;
}

}  // namespace trireme::testing

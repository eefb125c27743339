#include "tests/kernels/block_fixtures.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "nlohmann/json.hpp"

namespace trireme::kernels::testing {

std::map<std::string, FixtureTensor> ReadBlockFixture(const std::string& name) {
  const std::string path = "tests/data/gguf-blocks/" + name + ".safetensors";
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (content.size() < 8) {
    std::printf("%s is missing: run tests from the repository's root\n", path.c_str());
    std::abort();
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, content.data(), sizeof(header_bytes));
  const nlohmann::json header = nlohmann::json::parse(content.substr(8, header_bytes));
  std::map<std::string, FixtureTensor> tensors;
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") {
      continue;
    }
    const std::vector<size_t> offsets = entry.at("data_offsets").get<std::vector<size_t>>();
    FixtureTensor tensor;
    tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
    tensor.bytes.resize(offsets.at(1) - offsets.at(0));
    std::memcpy(tensor.bytes.data(), content.data() + 8 + header_bytes + offsets.at(0),
                tensor.bytes.size());
    tensors.emplace(key, std::move(tensor));
  }
  return tensors;
}

}  // namespace trireme::kernels::testing

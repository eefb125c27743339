// Reads the safetensors files of tests/data/gguf-blocks: raw blocks and what they decode to.
#ifndef TRIREME_TESTS_KERNELS_BLOCK_FIXTURES_H_
#define TRIREME_TESTS_KERNELS_BLOCK_FIXTURES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trireme::kernels::testing {

struct FixtureTensor {
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  const float* floats() const { return reinterpret_cast<const float*>(bytes.data()); }
  const double* doubles() const { return reinterpret_cast<const double*>(bytes.data()); }
  int64_t rows() const { return shape.at(0); }
  int64_t columns() const { return shape.at(1); }
};

// All tensors of tests/data/gguf-blocks/<name>.safetensors. Ends the test program when the file is
// not there or is none.
std::map<std::string, FixtureTensor> ReadBlockFixture(const std::string& name);

}  // namespace trireme::kernels::testing

#endif  // TRIREME_TESTS_KERNELS_BLOCK_FIXTURES_H_

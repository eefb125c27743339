// Reads the expected values of fixtures: all float32 and int32 tensors of a small safetensors file.
#ifndef TRIREME_TESTS_SUPPORT_SAFETENSORS_READER_H_
#define TRIREME_TESTS_SUPPORT_SAFETENSORS_READER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trireme::testing {

struct ReadTensor {
  std::vector<int64_t> shape;
  std::vector<float> floats;      // for F32
  std::vector<int32_t> integers;  // for I32
};

// CHECKs that the file is one; tests name files that are there.
std::map<std::string, ReadTensor> ReadSafetensors(const std::string& path);

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_SAFETENSORS_READER_H_

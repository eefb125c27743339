// The GGUF files of tests/data/gguf-files and small helpers to judge readers by them.
#ifndef TRIREME_TESTS_SUPPORT_GGUF_FIXTURES_H_
#define TRIREME_TESTS_SUPPORT_GGUF_FIXTURES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace trireme {

inline constexpr char kGgufFixtures[] = "tests/data/gguf-files";

// One entry of "bad" in index.json.
struct BadGguf {
  std::string file;   // below kGgufFixtures/bad
  std::string stage;  // who must refuse it: container, tensors, model, tokenizer, split
  std::string wrong;
  std::vector<std::vector<std::string>> words;  // an error must have one spelling of each group
};

std::vector<BadGguf> BadGgufs();

// Empty when `status` is an error that names `path` and has a spelling of each group (ignoring
// case, and not counting the path itself); otherwise what is wrong with it.
std::string JudgeError(const absl::Status& status, const std::string& path,
                       const std::vector<std::vector<std::string>>& words);

std::string ReadFile(const std::string& path);  // CHECKs that it can be read

// An allocation of exactly these bytes, so that the address sanitizer sees a read past the end.
class ExactBytes {
 public:
  explicit ExactBytes(const std::string& bytes);
  absl::Span<const uint8_t> span() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_;
};

// CRC-32 as in zlib.
uint32_t Crc32(absl::Span<const uint8_t> bytes);

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_GGUF_FIXTURES_H_

// The main() of a fuzz entry point where no fuzzer is at hand: gives it each file below the folders
// of the command line as it is, then `--mutations=N` changed copies of each, the same in every run.
// Each input is an allocation of its own size, so that the address sanitizer sees one byte past it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// Values at which lengths, counts and offsets go wrong.
constexpr uint64_t kEdges[] = {
    0,          1,          4,          9,          12,         13,         31,         33,
    0x7f,       0x80,       0xff,       0xffff,     0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 32,
    1ULL << 59, 1ULL << 61, 1ULL << 62, 1ULL << 63, ~0ULL,      ~0ULL - 31};

void Feed(const std::vector<uint8_t>& bytes) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  LLVMFuzzerTestOneInput(exact.get(), bytes.size());
}

void Mutate(std::vector<uint8_t>& bytes, std::mt19937& generator) {
  if (bytes.empty()) {
    return;
  }
  const auto below = [&generator](size_t limit) {
    return static_cast<size_t>(generator()) % std::max<size_t>(limit, 1);
  };
  // Headers are small against weights: half of all changes fall into the first 1024 bytes.
  const size_t reach = generator() % 2 == 0 ? std::min<size_t>(bytes.size(), 1024) : bytes.size();
  const size_t at = below(reach);
  switch (generator() % 6) {
    case 0:
      bytes[at] ^= static_cast<uint8_t>(1U << below(8));
      return;
    case 1:
      bytes[at] = static_cast<uint8_t>(generator());
      return;
    case 2:
    case 3: {
      uint64_t edge = kEdges[below(std::size(kEdges))];
      const size_t width = size_t{1} << below(4);
      for (size_t i = at; i < std::min(at + width, bytes.size()); ++i) {
        bytes[i] = static_cast<uint8_t>(edge);
        edge >>= 8;
      }
      return;
    }
    case 4:
      bytes.resize(below(bytes.size()));
      return;
    default: {
      const size_t count = std::min(below(64) + 1, bytes.size() - at);
      const std::vector<uint8_t> copy(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(at + count));
      const size_t target = below(bytes.size());
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(target), copy.begin(), copy.end());
      return;
    }
  }
}

int64_t Replay(const std::filesystem::path& path, int mutations) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<uint8_t> whole{std::istreambuf_iterator<char>(stream), {}};
  Feed(whole);
  std::mt19937 generator(1);
  for (int i = 0; i < mutations; ++i) {
    std::vector<uint8_t> bytes = whole;
    const size_t changes = 1 + generator() % 3;
    for (size_t change = 0; change < changes; ++change) {
      Mutate(bytes, generator);
    }
    Feed(bytes);
  }
  return 1 + mutations;
}

}  // namespace

int main(int argument_count, char** arguments) {
  int mutations = 0;
  int64_t inputs = 0;
  for (int i = 1; i < argument_count; ++i) {
    absl::string_view text = arguments[i];
    if (absl::ConsumePrefix(&text, "--mutations=")) {
      if (!absl::SimpleAtoi(text, &mutations)) {
        std::fprintf(stderr, "--mutations=%s is no number, as in --mutations=100\n", text.data());
        return 2;
      }
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[i])) {
      if (entry.is_regular_file()) {
        inputs += Replay(entry.path(), mutations);
      }
    }
  }
  std::printf("%lld inputs, no crash\n", static_cast<long long>(inputs));
  return inputs > 0 ? 0 : 2;
}

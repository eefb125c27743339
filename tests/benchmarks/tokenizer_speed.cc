// How fast one thread turns text into token ids: tokenizer_speed MODEL TEXT_FILE. Prints MB/s (of
// UTF-8, 10^6 bytes) of processor time, the best of a few passes: over the whole text at once, and
// over it in pieces of the size of a prompt, each a call of its own.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/model_text.h"
#include "runtime/text/tokenizer.h"

namespace trireme {
namespace {

constexpr int kPasses = 5;
constexpr size_t kPromptBytes = 4096;

double ThreadSeconds() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The tokens of `text` cut into pieces of `piece_bytes`; -1 after an error, which is printed.
int64_t CountTokens(const text::Tokenizer& tokenizer, absl::string_view text, size_t piece_bytes) {
  int64_t tokens = 0;
  for (size_t i = 0; i < text.size(); i += piece_bytes) {
    const auto ids = tokenizer.Encode(text.substr(i, piece_bytes), text::SpecialTokens::kAsText,
                                      /*add_bos=*/false);
    if (!ids.ok()) {
      absl::FPrintF(stderr, "%s\n", ids.status().message());
      return -1;
    }
    tokens += static_cast<int64_t>(ids->size());
  }
  return tokens;
}

int Run(const std::string& model, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const absl::StatusOr<engine::ModelText> opened = engine::OpenModelText(model);
  if (text.empty() || !opened.ok() || opened->tokenizer == nullptr) {
    absl::FPrintF(stderr, "%s is empty, or no tokenizer: %s\n", path, opened.status().ToString());
    return 1;
  }
  for (const size_t piece_bytes : {text.size(), kPromptBytes}) {
    double seconds = 1e9;
    int64_t tokens = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
      const double begin = ThreadSeconds();
      tokens = CountTokens(*opened->tokenizer, text, piece_bytes);
      seconds = std::min(seconds, ThreadSeconds() - begin);
      if (tokens < 0) {
        return 1;
      }
    }
    const auto bytes = static_cast<double>(text.size());
    absl::PrintF("%9d bytes a call: %.1f MB/s, %.2f bytes a token\n", piece_bytes,
                 bytes * 1e-6 / seconds, bytes / static_cast<double>(tokens));
  }
  return 0;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tokenizer_speed MODEL TEXT_FILE\n");
    return 64;
  }
  return trireme::Run(argv[1], argv[2]);
}

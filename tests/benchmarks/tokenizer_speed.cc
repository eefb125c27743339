// How fast one thread turns texts into token ids: tokenizer_speed MODEL TEXT_FILE... Prints for
// each MB/s (of UTF-8, 10^6 bytes) of processor time, the best of a few passes: over the whole text
// at once, over it in pieces of the size of a prompt, each a call of its own, and over the whole
// with the spellings of special tokens read as those.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

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

struct Reading {
  size_t bytes_a_call;
  text::SpecialTokens special_tokens;
};

// The tokens of `text`; -1 after an error, which is printed.
int64_t CountTokens(const text::Tokenizer& tokenizer, absl::string_view text, Reading reading) {
  int64_t tokens = 0;
  for (size_t i = 0; i < text.size(); i += reading.bytes_a_call) {
    const auto ids = tokenizer.Encode(text.substr(i, reading.bytes_a_call), reading.special_tokens,
                                      /*add_bos=*/false);
    if (!ids.ok()) {
      absl::FPrintF(stderr, "%s\n", ids.status().message());
      return -1;
    }
    tokens += static_cast<int64_t>(ids->size());
  }
  return tokens;
}

bool Measure(const text::Tokenizer& tokenizer, absl::string_view text, Reading reading) {
  double seconds = 1e9;
  int64_t tokens = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double begin = ThreadSeconds();
    tokens = CountTokens(tokenizer, text, reading);
    seconds = std::min(seconds, ThreadSeconds() - begin);
    if (tokens < 0) {
      return false;
    }
  }
  const auto bytes = static_cast<double>(text.size());
  const bool is_parsed = reading.special_tokens == text::SpecialTokens::kParse;
  absl::PrintF("%9d bytes a call%s: %.1f MB/s, %.2f bytes a token\n", reading.bytes_a_call,
               is_parsed ? ", special tokens parsed" : "", bytes * 1e-6 / seconds,
               bytes / static_cast<double>(tokens));
  return true;
}

int Run(const std::string& model, const std::vector<std::string>& paths) {
  const absl::StatusOr<engine::ModelText> opened = engine::OpenModelText(model);
  if (!opened.ok() || opened->tokenizer == nullptr) {
    absl::FPrintF(stderr, "%s: no tokenizer: %s\n", model, opened.status().ToString());
    return 1;
  }
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (text.empty()) {
      absl::FPrintF(stderr, "%s is empty or cannot be read\n", path);
      return 1;
    }
    absl::PrintF("%s\n", path);
    for (const Reading reading : {Reading{text.size(), text::SpecialTokens::kAsText},
                                  Reading{kPromptBytes, text::SpecialTokens::kAsText},
                                  Reading{text.size(), text::SpecialTokens::kParse}}) {
      if (!Measure(*opened->tokenizer, text, reading)) {
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tokenizer_speed MODEL TEXT_FILE...\n");
    return 64;
  }
  return trireme::Run(argv[1], {argv + 2, argv + argc});
}

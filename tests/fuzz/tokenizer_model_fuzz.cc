// Entry point for fuzzers over tokenizer.model, SentencePiece's and rank files.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/text/rank_file.h"
#include "runtime/text/rank_vocabulary.h"
#include "tests/fuzz/text_use.h"

namespace {

using trireme::text::Tokenizer;

// A rank file of any number of ranks.
absl::StatusOr<std::unique_ptr<Tokenizer>> OfRanks(absl::string_view file) {
  const auto tokens = trireme::text::ReadRankFile(file);
  if (!tokens.ok()) {
    return tokens.status();
  }
  auto data = trireme::text::MakeRankVocabulary(
      *tokens, {.pre_tokenizer = "gpt-2", .special_tokens = {"<|end|>"}}, {});
  return data.ok() ? Tokenizer::Create(*std::move(data)) : data.status();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  trireme::text::UseTokenizer(
      trireme::text::IsRankFile(file) ? OfRanks(file) : Tokenizer::CreateFromPieces(file, {}));
  return 0;
}

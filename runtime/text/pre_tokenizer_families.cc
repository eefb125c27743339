#include "runtime/text/pre_tokenizer_families.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "runtime/base/log.h"

namespace trireme::text {
namespace {

std::vector<PreTokenizerFamily> Families() {
  const std::string spaces = R"(|\s+(?!\S)|\s+)";
  const std::string lines = R"(|\s*[\r\n]+)" + spaces;
  const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  const std::string number = R"(\p{N})";
  const std::string three_numbers = R"(\p{N}{1,3})";
  const std::string gpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)" + spaces;
  const std::string letters = R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  const std::string others = R"(| ?[^\s\p{L}\p{N}]+)";
  const std::string llama3 =
      absl::StrCat(contraction, letters, three_numbers, others, R"([\r\n]*)", lines);
  const std::string qwen2 = absl::StrCat(contraction, letters, number, others, R"([\r\n]*)", lines);
  const std::string qwen35 = absl::StrCat(contraction, R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|)",
                                          number, R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)", lines);
  const std::string before_word = R"([^\r\n\p{L}\p{N}]?)";
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const std::string capitalised = absl::StrCat(before_word, upper, "*", lower, "+");
  const std::string all_capitals = absl::StrCat(before_word, upper, "+", lower, "*");
  const std::string others_slash = absl::StrCat(others, R"([\r\n/]*)", lines);
  const std::string gpt4o = absl::StrCat(capitalised, contraction, "?|", all_capitals, contraction,
                                         "?|", three_numbers, others_slash);
  const std::string tekken =
      absl::StrCat(capitalised, "|", all_capitals, "|", number, others_slash);
  const std::string deepseek_v3 =
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
      R"(| ?[\p{P}\p{S}]+[\r\n]*)" +
      lines;
  const std::string han_and_kana = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
  const std::string coder_scripts = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
  const PreTokenizerTraits whole_words_and_bos = {.ignore_merges = true, .adds_bos = true};
  return {
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       {llama3},
       whole_words_and_bos},
      {{"dbrx", "smaug-bpe"}, {llama3}, {}},
      {{"qwen2", "qwen3", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan",
        "solar-open"},
       {qwen2},
       {}},
      {{"qwen35"}, {qwen35}, {}},
      {{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0",
        "mellum", "modern-bert", "exaone4", "mpt", "olmo", "jais", "trillion", "granite-docling"},
       {gpt2},
       {}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
        "mellum2"},
       {number, gpt2},
       {}},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {gpt4o}, {}},
      {{"tekken"}, {tekken}, whole_words_and_bos},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       {three_numbers, han_and_kana, deepseek_v3},
       {}},
      {{"deepseek-coder"},
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", coder_scripts, number},
       {}},
      {{"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}, {}},
  };
}

absl::Status UnknownName(absl::string_view name, absl::Span<const PreTokenizerFamily> families) {
  if (name == "deepseek-llm") {
    return absl::UnimplementedError(
        "tokenizer.ggml.pre: the pre-tokenizer 'deepseek-llm' is not built into Trireme");
  }
  std::vector<absl::string_view> known;
  for (const PreTokenizerFamily& family : families) {
    known.insert(known.end(), family.names.begin(), family.names.end());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer.ggml.pre: unknown pre-tokenizer '", name.substr(0, 100),
                   "'; a wrong one would give wrong tokens, so none is guessed. Known: ",
                   absl::StrJoin(known, ", ")));
}

}  // namespace

absl::StatusOr<PreTokenizerFamily> FindPreTokenizerFamily(absl::string_view name) {
  if (name.empty()) {
    Log(LogLevel::kWarning,
        "tokenizer.ggml.pre is missing: using the pre-tokenizer \"default\", which may not be the "
        "one that the model was trained with");
    name = "default";
  }
  const std::vector<PreTokenizerFamily> families = Families();
  for (const PreTokenizerFamily& family : families) {
    if (std::find(family.names.begin(), family.names.end(), name) != family.names.end()) {
      return family;
    }
  }
  return UnknownName(name, families);
}

}  // namespace trireme::text

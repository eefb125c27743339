// Finds and reads a tokenizer that lies in files of its own, as published checkpoints have it
// beside their weights; one inside a GGUF file is the business of who reads that.
// Kinds: tokenizer.json, SentencePiece's tokenizer.model, and rank files, which are called
// tokenizer.model, tiktoken.model or *.tiktoken.
#ifndef TRIREME_RUNTIME_TEXT_TOKENIZER_FILES_H_
#define TRIREME_RUNTIME_TEXT_TOKENIZER_FILES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/text/tokenizer.h"

namespace trireme::text {

// The tokenizer's file in a folder: tokenizer.json, else tokenizer.model, tiktoken.model, or the
// first *.tiktoken by name; empty when there is none.
std::string FindTokenizerFile(const std::string& folder);

// What a model's folder says beside the tokenizer itself: the special tokens and the chat template
// of tokenizer_config.json (and special_tokens_map.json), chat_template.jinja, which goes before
// the former, and the end tokens of generation_config.json and config.json. Files that are not
// there say nothing. Errors: InvalidArgument, naming the file, for one that is no JSON or has a
// member of the wrong type.
absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const std::string& folder);

// `path`: a file of any kind, told apart by their content, or a folder with one of them and the
// settings above. Errors, naming the file: those of reading it (NotFound with what was looked for
// in a folder), and those of the tokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& path);

// A hash over names and content of all files of a folder that OpenTokenizer would read: equal ones
// give the same tokens and prompts. Errors: those of reading a file.
absl::StatusOr<uint64_t> FingerprintTokenizerFiles(const std::string& folder);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_TOKENIZER_FILES_H_

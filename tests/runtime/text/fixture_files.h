// Fixture files for the tests of runtime/text: where they lie, and vocabularies out of GGUF files
// by a reader of its own, since text does not depend on runtime/weights.
#ifndef TRIREME_TESTS_RUNTIME_TEXT_FIXTURE_FILES_H_
#define TRIREME_TESTS_RUNTIME_TEXT_FIXTURE_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/text/vocabulary.h"

namespace trireme::text {

// The path of a fixture such as "tokenizers/parts/splits.json": in tests/data, else in
// $TRIREME_FIXTURES or
// ../shared/fixtures. Absent: std::nullopt, and one line says which file a test goes without.
std::optional<std::string> FindFixture(const std::string& name);

// The parsed file. The file must be there.
nlohmann::json ReadJson(const std::string& path);

// The tokenizer.* keys of a well-formed GGUF file. Keys of an unexpected type are left out.
VocabularyData ReadVocabulary(const std::string& path);

// Folders of fixtures/tokenizers that hold a tokenizer.gguf and cases.gguf.json.
std::vector<std::string> TokenizerFolders();

// A byte-level vocabulary by code: ids 0 to 255 are the bytes 0 to 255, then one token for each
// merge, in order, then the special tokens with their types. Kind "gpt2", pre-tokenizer "gpt-2".
struct NamedToken {
  std::string text;
  TokenType type;
};
VocabularyData MakeByteLevelVocabulary(const std::vector<std::string>& merges,
                                       const std::vector<NamedToken>& special_tokens);

}  // namespace trireme::text

#endif  // TRIREME_TESTS_RUNTIME_TEXT_FIXTURE_FILES_H_

// The rows of fixtures/tokenizers/parts/components.json: parts of a tokenizer.json, each with
// inputs and outputs.
#ifndef TRIREME_TESTS_RUNTIME_TEXT_TOKENIZER_PARTS_TEST_SUPPORT_H_
#define TRIREME_TESTS_RUNTIME_TEXT_TOKENIZER_PARTS_TEST_SUPPORT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/runtime/text/fixture_files.h"

namespace trireme::text {

// The rows of one kind: "normalizer", "pre_tokenizer", "decoder" or "post_processor".
inline std::vector<nlohmann::json> ComponentRows(const std::string& kind) {
  std::vector<nlohmann::json> rows;
  const auto path = FindFixture("tokenizers/parts/components.json");
  if (path.has_value()) {
    const nlohmann::json file = ReadJson(*path);
    for (const auto& row : file["cases"]) {
      if (row["kind"] == kind) {
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace trireme::text

#endif  // TRIREME_TESTS_RUNTIME_TEXT_TOKENIZER_PARTS_TEST_SUPPORT_H_

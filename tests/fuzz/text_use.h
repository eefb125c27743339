// What a tokenizer that could be read is then put through.
#ifndef TRIREME_TESTS_FUZZ_TEXT_USE_H_
#define TRIREME_TESTS_FUZZ_TEXT_USE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/check.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"

namespace trireme::text {

inline void UseTokenizer(const absl::StatusOr<std::unique_ptr<Tokenizer>>& tokenizer) {
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.status().message().empty());
    return;
  }
  for (const absl::string_view text :
       {"", "The low newer words, 12345 of it's\r\n\r\n  <s>x</s> <|end|>",
        "na\xc3\xafve \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80 \xe2\x96\x81 e\xcc\x81\xcc\xa3"}) {
    for (const SpecialTokens special : {SpecialTokens::kParse, SpecialTokens::kAllAsText}) {
      const auto ids = (*tokenizer)->Encode(text, special, /*add_bos=*/true);
      if (!ids.ok()) {
        continue;
      }
      for (const int32_t id : *ids) {
        CHECK_GE(id, 0);
        CHECK_LT(id, (*tokenizer)->vocabulary_size());
      }
      CHECK(Decode(**tokenizer, *ids, SpecialTokenDisplay::kHide).ok());
    }
  }
}

}  // namespace trireme::text

#endif  // TRIREME_TESTS_FUZZ_TEXT_USE_H_

// A tokenizer of 256 byte tokens, id = byte, and one end-of-generation token, id 256.
#ifndef TRIREME_TESTS_SUPPORT_BYTE_TOKENIZER_H_
#define TRIREME_TESTS_SUPPORT_BYTE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/text/tokenizer.h"

namespace trireme::testing {

inline constexpr int32_t kByteTokenizerEos = 256;
inline constexpr int32_t kByteTokenizerVocabulary = 257;

inline std::unique_ptr<text::Tokenizer> MakeByteTokenizer() {
  text::VocabularyData data;
  data.model = "gpt2";
  data.pre_tokenizer = "gpt-2";
  // GPT-2's table: bytes that print stand for themselves, the others for U+0100 and up, in order.
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const uint32_t character = prints ? byte : next++;
    std::string token;
    if (character < 0x80) {
      token += static_cast<char>(character);
    } else {
      token += static_cast<char>(0xC0 | character >> 6);
      token += static_cast<char>(0x80 | (character & 0x3F));
    }
    data.tokens.push_back(token);
    data.token_types.push_back(1);
  }
  data.tokens.push_back("<|end|>");
  data.token_types.push_back(3);
  data.merges.emplace();
  data.eos_id = kByteTokenizerEos;
  data.bos_id = kByteTokenizerEos;
  auto tokenizer = text::Tokenizer::Create(std::move(data));
  if (!tokenizer.ok()) {
    ::trireme::internal::CheckFailed(__FILE__, __LINE__, tokenizer.status().ToString());
  }
  return *std::move(tokenizer);
}

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_BYTE_TOKENIZER_H_

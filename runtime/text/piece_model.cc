#include "runtime/text/piece_model.h"

namespace trireme::text {
namespace {

// The value of one upper-case hexadecimal digit, or -1.
int HexDigit(char character) {
  if (character >= '0' && character <= '9') {
    return character - '0';
  }
  return character >= 'A' && character <= 'F' ? character - 'A' + 10 : -1;
}

}  // namespace

int ByteOfToken(absl::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') {
    return -1;
  }
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::array<int32_t, 256> FindByteTokens(const std::vector<std::string>& tokens) {
  std::array<int32_t, 256> ids;
  ids.fill(-1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int byte = ByteOfToken(tokens[i]);
    if (byte >= 0) {
      ids[static_cast<size_t>(byte)] = static_cast<int32_t>(i);
    }
  }
  return ids;
}

}  // namespace trireme::text

// A place in the tokens of a template, with what the parts of the parser share: looking, taking,
// errors, limits, symbols. Not thread-safe.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_TOKEN_CURSOR_H_
#define TRIREME_RUNTIME_TEXT_JINJA_TOKEN_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/text/jinja_lexer.h"
#include "runtime/text/jinja_syntax.h"

namespace trireme::text::jinja {

class TokenCursor {
 public:
  // Both outlive the cursor; symbols go into `tree`. The last token is kEnd.
  TokenCursor(const std::vector<Token>& tokens, SyntaxTree& tree);

  const Token& current() const { return tokens_[position_]; }
  const Token& next() const {
    return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
  }
  void Advance() { position_ += position_ + 1 < tokens_.size() ? 1 : 0; }
  bool AtName(std::string_view name) const;
  bool AtOperator(std::string_view name) const;
  // Each advances when the current token is the one wanted.
  bool TakeName(std::string_view name);
  bool TakeOperator(std::string_view name);
  absl::Status ExpectName(std::string_view name);
  absl::Status ExpectOperator(std::string_view name);
  absl::Status Expect(TokenKind kind, std::string_view description);
  // An error at the current token, which it quotes.
  absl::Status Unexpected(std::string_view wanted) const;
  absl::Status ErrorAt(uint32_t offset, std::string_view message) const;

  // The number of a variable name.
  int Symbol(const std::string& name);
  // RESOURCE_EXHAUSTED when the tree has grown past kTreeNodesMax.
  absl::Status CountNode();
  // Brackets and blocks that are open. Enter fails beyond kNestingMax.
  absl::Status Enter();
  void Leave() { --nesting_; }
  // RESOURCE_EXHAUSTED: "place: what the limit of N".
  absl::Status LimitError(uint32_t offset, std::string_view what, int limit) const;

 private:
  const std::vector<Token>& tokens_;
  SyntaxTree& tree_;
  size_t position_ = 0;
  int nesting_ = 0;
  int nodes_ = 0;
};

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_TOKEN_CURSOR_H_

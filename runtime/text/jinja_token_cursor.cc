#include "runtime/text/jinja_token_cursor.h"

#include "runtime/text/jinja_parser.h"
#include "runtime/text/jinja_strings.h"

namespace trireme::text::jinja {
namespace {

// What an error calls the token.
std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "template text";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "the end of the tag";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "the end of the expression";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kName:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kOperator:
      return Joined("'", token.value.substr(0, 40), "'");
  }
  return "a token";
}

}  // namespace

TokenCursor::TokenCursor(const std::vector<Token>& tokens, SyntaxTree& tree)
    : tokens_(tokens), tree_(tree) {
  for (const char* name : {"loop", "caller", "varargs", "kwargs"}) {
    Symbol(name);
  }
}

bool TokenCursor::AtName(std::string_view name) const {
  return current().kind == TokenKind::kName && current().value == name;
}

bool TokenCursor::AtOperator(std::string_view name) const {
  return current().kind == TokenKind::kOperator && current().value == name;
}

bool TokenCursor::TakeName(std::string_view name) {
  const bool taken = AtName(name);
  if (taken) {
    Advance();
  }
  return taken;
}

bool TokenCursor::TakeOperator(std::string_view name) {
  const bool taken = AtOperator(name);
  if (taken) {
    Advance();
  }
  return taken;
}

absl::Status TokenCursor::ExpectName(std::string_view name) {
  return TakeName(name) ? absl::OkStatus() : Unexpected(Joined("'", name, "'"));
}

absl::Status TokenCursor::ExpectOperator(std::string_view name) {
  return TakeOperator(name) ? absl::OkStatus() : Unexpected(Joined("'", name, "'"));
}

absl::Status TokenCursor::Expect(TokenKind kind, std::string_view description) {
  if (current().kind != kind) {
    return Unexpected(description);
  }
  Advance();
  return absl::OkStatus();
}

absl::Status TokenCursor::Unexpected(std::string_view wanted) const {
  return ErrorAt(current().offset, Joined("expected ", wanted, ", found ", Describe(current())));
}

absl::Status TokenCursor::ErrorAt(uint32_t offset, std::string_view message) const {
  return SyntaxError(tree_.source, offset, message);
}

int TokenCursor::Symbol(const std::string& name) {
  const auto [entry, is_new] =
      tree_.symbol_numbers.emplace(name, static_cast<int>(tree_.symbols.size()));
  if (is_new) {
    tree_.symbols.push_back(name);
  }
  return entry->second;
}

absl::Status TokenCursor::CountNode() {
  if (++nodes_ > kTreeNodesMax) {
    return LimitError(current().offset, "more syntax nodes than", kTreeNodesMax);
  }
  return absl::OkStatus();
}

absl::Status TokenCursor::Enter() {
  if (++nesting_ > kNestingMax) {
    return LimitError(current().offset, "brackets and blocks are nested deeper than", kNestingMax);
  }
  return absl::OkStatus();
}

absl::Status TokenCursor::LimitError(uint32_t offset, std::string_view what, int limit) const {
  return absl::ResourceExhaustedError(Joined("chat template, ", PlaceOf(tree_.source, offset), ": ",
                                             what, " the limit of ", limit));
}

}  // namespace trireme::text::jinja

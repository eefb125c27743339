// The part of the template parser that knows expressions; jinja_parser.cc adds statements on top.
// Operands (names, literals, brackets, calls) are in jinja_operand_parser.cc. Not thread-safe.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_EXPRESSION_PARSER_H_
#define TRIREME_RUNTIME_TEXT_JINJA_EXPRESSION_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/text/jinja_syntax.h"
#include "runtime/text/jinja_token_cursor.h"

namespace trireme::text::jinja {

class ExpressionParser {
 public:
  // The cursor outlives the parser.
  explicit ExpressionParser(TokenCursor& cursor) : cursor_(cursor) {}

  // One expression, or a tuple without brackets when `allow_tuple`. `allow_condition`: whether "a
  // if b" belongs to it.
  absl::StatusOr<ExpressionPointer> Parse(bool allow_tuple, bool allow_condition = true);
  // "name(arguments) | name ..." of a filter block; the current token is the first name.
  absl::StatusOr<ExpressionPointer> ParseFilterChain();

  // Whether any expression since the last reset named them.
  struct SpecialNames {
    bool caller = false;
    bool varargs = false;
    bool kwargs = false;
  };
  SpecialNames& special_names() { return special_names_; }

 private:
  using Result = absl::StatusOr<ExpressionPointer>;

  Result Make(ExpressionKind kind, uint32_t offset, std::vector<ExpressionPointer> operands);
  // Takes the height of `extra` into account.
  absl::Status Raise(Expression& expression, const ExpressionPointer& extra);
  Result ParseCondition();
  Result ParseBinary(int lowest_level);
  Result ParseOperatorTail(ExpressionPointer left, int level);
  Result ParseComparison(ExpressionPointer left);
  Result ParseConcatenation(ExpressionPointer left);
  Result ParseUnary(bool with_filters);
  Result ParsePrimary();
  Result ParseName();
  Result ParseNumber();
  Result ParseString();
  Result ParseTupleRest(uint32_t offset, bool in_brackets, bool allow_condition);
  Result ParseListLiteral();
  Result ParseMapLiteral();
  Result ParsePostfix(ExpressionPointer node);
  Result ParseFiltersAndTests(ExpressionPointer node);
  Result ParseFilter(ExpressionPointer node);
  Result ParseTest(ExpressionPointer node);
  Result ParseAttribute(ExpressionPointer node);
  Result ParseElement(ExpressionPointer node);
  Result ParseCall(ExpressionPointer node);
  absl::StatusOr<std::string> ParseDottedName(std::string_view what);
  absl::Status ParseArguments(CallArguments& arguments, int& height);
  absl::Status ParseOneArgument(CallArguments& arguments, int& height);
  int CurrentLevel() const;
  bool AtTupleEnd() const;

  TokenCursor& cursor_;
  SpecialNames special_names_;
};

// A string value made of template text.
Value TrustedString(std::string text);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_EXPRESSION_PARSER_H_

#include "runtime/text/jinja_expression_parser.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_parser.h"
#include "runtime/text/jinja_strings.h"

namespace trireme::text::jinja {
namespace {

// Binding strength of operators, weakest first. `~` binds tighter than `+`.
constexpr int kOrLevel = 1;
constexpr int kAndLevel = 2;
constexpr int kNotLevel = 3;
constexpr int kCompareLevel = 4;
constexpr int kAddLevel = 5;
constexpr int kConcatenateLevel = 6;
constexpr int kMultiplyLevel = 7;
constexpr int kPowerLevel = 8;
constexpr int kUnaryLevel = 9;

struct OperatorEntry {
  std::string_view name;
  int level;
  Operator operation;
};

constexpr OperatorEntry kOperatorEntries[] = {
    {"==", kCompareLevel, Operator::kEqual},
    {"!=", kCompareLevel, Operator::kNotEqual},
    {"<", kCompareLevel, Operator::kLess},
    {"<=", kCompareLevel, Operator::kLessEqual},
    {">", kCompareLevel, Operator::kGreater},
    {">=", kCompareLevel, Operator::kGreaterEqual},
    {"+", kAddLevel, Operator::kAdd},
    {"-", kAddLevel, Operator::kSubtract},
    {"*", kMultiplyLevel, Operator::kMultiply},
    {"/", kMultiplyLevel, Operator::kDivide},
    {"//", kMultiplyLevel, Operator::kFloorDivide},
    {"%", kMultiplyLevel, Operator::kModulo},
    {"**", kPowerLevel, Operator::kPower},
};

const OperatorEntry* FindOperator(std::string_view name) {
  for (const OperatorEntry& entry : kOperatorEntries) {
    if (entry.name == name) {
      return &entry;
    }
  }
  return nullptr;
}

std::vector<ExpressionPointer> Operands(ExpressionPointer a) {
  std::vector<ExpressionPointer> operands;
  operands.push_back(std::move(a));
  return operands;
}

std::vector<ExpressionPointer> Operands(ExpressionPointer a, ExpressionPointer b) {
  std::vector<ExpressionPointer> operands = Operands(std::move(a));
  operands.push_back(std::move(b));
  return operands;
}

}  // namespace

absl::Status ExpressionParser::Raise(Expression& expression, const ExpressionPointer& extra) {
  if (extra != nullptr) {
    expression.height = std::max(expression.height, extra->height + 1);
  }
  if (expression.height > kExpressionHeightMax) {
    return cursor_.LimitError(expression.offset, "an expression is a longer chain than",
                              kExpressionHeightMax);
  }
  return absl::OkStatus();
}

ExpressionParser::Result ExpressionParser::Make(ExpressionKind kind, uint32_t offset,
                                                std::vector<ExpressionPointer> operands) {
  RETURN_IF_ERROR(cursor_.CountNode());
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->offset = offset;
  expression->operands = std::move(operands);
  for (const ExpressionPointer& operand : expression->operands) {
    RETURN_IF_ERROR(Raise(*expression, operand));
  }
  return expression;
}

ExpressionParser::Result ExpressionParser::Parse(bool allow_tuple, bool allow_condition) {
  if (allow_tuple) {
    return ParseTupleRest(cursor_.current().offset, /*in_brackets=*/false, allow_condition);
  }
  return allow_condition ? ParseCondition() : ParseBinary(kOrLevel);
}

ExpressionParser::Result ExpressionParser::ParseCondition() {
  RETURN_IF_ERROR(cursor_.Enter());
  ASSIGN_OR_RETURN(ExpressionPointer value, ParseBinary(kOrLevel));
  while (cursor_.AtName("if")) {
    const uint32_t offset = cursor_.current().offset;
    cursor_.Advance();
    ASSIGN_OR_RETURN(ExpressionPointer condition, ParseBinary(kOrLevel));
    ExpressionPointer otherwise;
    if (cursor_.TakeName("else")) {
      ASSIGN_OR_RETURN(otherwise, ParseCondition());
    }
    std::vector<ExpressionPointer> operands = Operands(std::move(condition), std::move(value));
    operands.push_back(std::move(otherwise));
    ASSIGN_OR_RETURN(value, Make(ExpressionKind::kCondition, offset, std::move(operands)));
  }
  cursor_.Leave();
  return value;
}

int ExpressionParser::CurrentLevel() const {
  const Token& token = cursor_.current();
  if (token.kind == TokenKind::kName) {
    if (token.value == "or") {
      return kOrLevel;
    }
    if (token.value == "and") {
      return kAndLevel;
    }
    const bool is_not_in = token.value == "not" && cursor_.next().kind == TokenKind::kName &&
                           cursor_.next().value == "in";
    return token.value == "in" || is_not_in ? kCompareLevel : 0;
  }
  if (token.kind != TokenKind::kOperator) {
    return 0;
  }
  if (token.value == "~") {
    return kConcatenateLevel;
  }
  const OperatorEntry* entry = FindOperator(token.value);
  return entry == nullptr ? 0 : entry->level;
}

ExpressionParser::Result ExpressionParser::ParseBinary(int lowest_level) {
  ExpressionPointer left;
  if (lowest_level <= kNotLevel && cursor_.AtName("not")) {
    const uint32_t offset = cursor_.current().offset;
    RETURN_IF_ERROR(cursor_.Enter());
    cursor_.Advance();
    ASSIGN_OR_RETURN(ExpressionPointer operand, ParseBinary(kNotLevel));
    ASSIGN_OR_RETURN(left, Make(ExpressionKind::kNot, offset, Operands(std::move(operand))));
    cursor_.Leave();
  } else {
    ASSIGN_OR_RETURN(left, ParseUnary(/*with_filters=*/true));
  }
  for (int level = CurrentLevel(); level != 0 && level >= lowest_level; level = CurrentLevel()) {
    ASSIGN_OR_RETURN(left, ParseOperatorTail(std::move(left), level));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseOperatorTail(ExpressionPointer left, int level) {
  if (level == kCompareLevel) {
    return ParseComparison(std::move(left));
  }
  if (level == kConcatenateLevel) {
    return ParseConcatenation(std::move(left));
  }
  const Token& token = cursor_.current();
  const uint32_t offset = token.offset;
  cursor_.Advance();
  ASSIGN_OR_RETURN(ExpressionPointer right, ParseBinary(level + 1));
  std::vector<ExpressionPointer> operands = Operands(std::move(left), std::move(right));
  if (level == kOrLevel || level == kAndLevel) {
    return Make(level == kOrLevel ? ExpressionKind::kOr : ExpressionKind::kAnd, offset,
                std::move(operands));
  }
  ASSIGN_OR_RETURN(ExpressionPointer node,
                   Make(ExpressionKind::kBinary, offset, std::move(operands)));
  node->operators.push_back(FindOperator(token.value)->operation);
  return node;
}

ExpressionParser::Result ExpressionParser::ParseComparison(ExpressionPointer left) {
  const uint32_t offset = cursor_.current().offset;
  std::vector<ExpressionPointer> operands = Operands(std::move(left));
  std::vector<Operator> operators;
  while (CurrentLevel() == kCompareLevel) {
    if (cursor_.TakeName("in")) {
      operators.push_back(Operator::kIn);
    } else if (cursor_.TakeName("not")) {
      cursor_.Advance();
      operators.push_back(Operator::kNotIn);
    } else {
      operators.push_back(FindOperator(cursor_.current().value)->operation);
      cursor_.Advance();
    }
    ASSIGN_OR_RETURN(ExpressionPointer operand, ParseBinary(kAddLevel));
    operands.push_back(std::move(operand));
  }
  ASSIGN_OR_RETURN(ExpressionPointer node,
                   Make(ExpressionKind::kCompare, offset, std::move(operands)));
  node->operators = std::move(operators);
  return node;
}

ExpressionParser::Result ExpressionParser::ParseConcatenation(ExpressionPointer left) {
  const uint32_t offset = cursor_.current().offset;
  std::vector<ExpressionPointer> operands = Operands(std::move(left));
  while (cursor_.TakeOperator("~")) {
    ASSIGN_OR_RETURN(ExpressionPointer operand, ParseBinary(kMultiplyLevel));
    operands.push_back(std::move(operand));
  }
  return Make(ExpressionKind::kConcatenate, offset, std::move(operands));
}

ExpressionParser::Result ExpressionParser::ParseUnary(bool with_filters) {
  ExpressionPointer node;
  if (cursor_.AtOperator("-") || cursor_.AtOperator("+")) {
    const bool is_negative = cursor_.AtOperator("-");
    const uint32_t offset = cursor_.current().offset;
    RETURN_IF_ERROR(cursor_.Enter());
    cursor_.Advance();
    ASSIGN_OR_RETURN(ExpressionPointer operand, ParseUnary(/*with_filters=*/false));
    ASSIGN_OR_RETURN(node, Make(is_negative ? ExpressionKind::kNegative : ExpressionKind::kPositive,
                                offset, Operands(std::move(operand))));
    cursor_.Leave();
  } else {
    ASSIGN_OR_RETURN(node, ParsePrimary());
  }
  ASSIGN_OR_RETURN(node, ParsePostfix(std::move(node)));
  return with_filters ? ParseFiltersAndTests(std::move(node)) : std::move(node);
}

ExpressionParser::Result ExpressionParser::ParseFiltersAndTests(ExpressionPointer node) {
  while (true) {
    if (cursor_.AtOperator("|")) {
      cursor_.Advance();
      ASSIGN_OR_RETURN(node, ParseFilter(std::move(node)));
    } else if (cursor_.AtName("is")) {
      cursor_.Advance();
      ASSIGN_OR_RETURN(node, ParseTest(std::move(node)));
    } else if (cursor_.AtOperator("(")) {
      ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

absl::StatusOr<std::string> ExpressionParser::ParseDottedName(std::string_view what) {
  if (cursor_.current().kind != TokenKind::kName) {
    return cursor_.Unexpected(Joined("the name of a ", what));
  }
  std::string name = cursor_.current().value;
  cursor_.Advance();
  while (cursor_.AtOperator(".")) {
    cursor_.Advance();
    if (cursor_.current().kind != TokenKind::kName) {
      return cursor_.Unexpected("a name after '.'");
    }
    AppendJoined(name, ".", cursor_.current().value);
    cursor_.Advance();
  }
  return name;
}

ExpressionParser::Result ExpressionParser::ParseFilter(ExpressionPointer node) {
  const uint32_t offset = cursor_.current().offset;
  ASSIGN_OR_RETURN(std::string name, ParseDottedName("filter"));
  auto arguments = std::make_unique<CallArguments>();
  int height = node == nullptr ? 0 : node->height;
  if (cursor_.AtOperator("(")) {
    RETURN_IF_ERROR(ParseArguments(*arguments, height));
  }
  ASSIGN_OR_RETURN(ExpressionPointer filter,
                   Make(ExpressionKind::kFilter, offset, Operands(std::move(node))));
  filter->height = height + 1;
  filter->constant = TrustedString(std::move(name));
  filter->arguments = std::move(arguments);
  RETURN_IF_ERROR(Raise(*filter, nullptr));
  return filter;
}

ExpressionParser::Result ExpressionParser::ParseFilterChain() {
  ASSIGN_OR_RETURN(ExpressionPointer filter, ParseFilter(nullptr));
  while (cursor_.TakeOperator("|")) {
    ASSIGN_OR_RETURN(filter, ParseFilter(std::move(filter)));
  }
  return filter;
}

ExpressionParser::Result ExpressionParser::ParseTest(ExpressionPointer node) {
  const bool is_negated = cursor_.TakeName("not");
  const uint32_t offset = cursor_.current().offset;
  ASSIGN_OR_RETURN(std::string name, ParseDottedName("test"));
  auto arguments = std::make_unique<CallArguments>();
  int height = node->height;
  const TokenKind kind = cursor_.current().kind;
  const bool is_operand = kind == TokenKind::kName || kind == TokenKind::kString ||
                          kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
                          cursor_.AtOperator("[") || cursor_.AtOperator("{");
  if (cursor_.AtOperator("(")) {
    RETURN_IF_ERROR(ParseArguments(*arguments, height));
  } else if (is_operand && !cursor_.AtName("else") && !cursor_.AtName("or") &&
             !cursor_.AtName("and")) {
    if (cursor_.AtName("is")) {
      return cursor_.ErrorAt(cursor_.current().offset, "tests cannot be chained with 'is'");
    }
    ASSIGN_OR_RETURN(ExpressionPointer operand, ParsePrimary());
    ASSIGN_OR_RETURN(operand, ParsePostfix(std::move(operand)));
    height = std::max(height, operand->height);
    arguments->positional.push_back(std::move(operand));
  }
  ASSIGN_OR_RETURN(ExpressionPointer test,
                   Make(ExpressionKind::kTest, offset, Operands(std::move(node))));
  test->height = height + 1;
  test->constant = TrustedString(std::move(name));
  test->arguments = std::move(arguments);
  RETURN_IF_ERROR(Raise(*test, nullptr));
  if (is_negated) {
    return Make(ExpressionKind::kNot, offset, Operands(std::move(test)));
  }
  return test;
}

}  // namespace trireme::text::jinja

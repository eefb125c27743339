#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_expression_parser.h"
#include "runtime/text/jinja_strings.h"

namespace trireme::text::jinja {
namespace {

int DigitValue(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

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

Value TrustedString(std::string text) {
  return Value::Of(std::make_shared<const StringData>(
      StringData{TracedText(std::move(text), Origin::kTrusted), StringFlavor::kPlain}));
}

ExpressionParser::Result ExpressionParser::ParsePrimary() {
  const Token& token = cursor_.current();
  switch (token.kind) {
    case TokenKind::kName:
      return ParseName();
    case TokenKind::kString:
      return ParseString();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return ParseNumber();
    default:
      break;
  }
  if (cursor_.AtOperator("(")) {
    RETURN_IF_ERROR(cursor_.Enter());
    const uint32_t offset = token.offset;
    cursor_.Advance();
    ASSIGN_OR_RETURN(ExpressionPointer node, ParseTupleRest(offset, /*in_brackets=*/true,
                                                            /*allow_condition=*/true));
    RETURN_IF_ERROR(cursor_.ExpectOperator(")"));
    cursor_.Leave();
    return node;
  }
  if (cursor_.AtOperator("[")) {
    return ParseListLiteral();
  }
  if (cursor_.AtOperator("{")) {
    return ParseMapLiteral();
  }
  return cursor_.Unexpected("an expression");
}

ExpressionParser::Result ExpressionParser::ParseName() {
  const Token& token = cursor_.current();
  const std::string& name = token.value;
  cursor_.Advance();
  const bool is_true = name == "true" || name == "True";
  const bool is_false = name == "false" || name == "False";
  const bool is_none = name == "none" || name == "None";
  if (is_true || is_false || is_none) {
    ASSIGN_OR_RETURN(ExpressionPointer node, Make(ExpressionKind::kConstant, token.offset, {}));
    node->constant = is_none ? Value::None() : Value::Boolean(is_true);
    return node;
  }
  ASSIGN_OR_RETURN(ExpressionPointer node, Make(ExpressionKind::kName, token.offset, {}));
  node->symbol = cursor_.Symbol(name);
  node->constant = TrustedString(name);
  special_names_.caller |= node->symbol == kCallerSymbol;
  special_names_.varargs |= node->symbol == kVarargsSymbol;
  special_names_.kwargs |= node->symbol == kKwargsSymbol;
  return node;
}

ExpressionParser::Result ExpressionParser::ParseString() {
  const uint32_t offset = cursor_.current().offset;
  std::string text;
  while (cursor_.current().kind == TokenKind::kString) {
    text.append(cursor_.current().value);
    cursor_.Advance();
  }
  ASSIGN_OR_RETURN(ExpressionPointer node, Make(ExpressionKind::kConstant, offset, {}));
  node->constant = TrustedString(std::move(text));
  return node;
}

ExpressionParser::Result ExpressionParser::ParseNumber() {
  const Token& token = cursor_.current();
  cursor_.Advance();
  ASSIGN_OR_RETURN(ExpressionPointer node, Make(ExpressionKind::kConstant, token.offset, {}));
  const std::string& digits = token.value;
  if (token.kind == TokenKind::kFloat) {
    double number = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec != std::errc()) {
      return cursor_.ErrorAt(token.offset, "this number does not fit a double");
    }
    node->constant = Value::Of(number);
    return node;
  }
  const char base_letter = digits.size() > 1 ? static_cast<char>(digits[1] | 0x20) : '0';
  const int base = base_letter == 'x' ? 16 : base_letter == 'o' ? 8 : base_letter == 'b' ? 2 : 10;
  Integer number = 0;
  for (size_t i = base == 10 ? 0 : 2; i < digits.size(); ++i) {
    if (__builtin_mul_overflow(number, static_cast<Integer>(base), &number) ||
        __builtin_add_overflow(number, static_cast<Integer>(DigitValue(digits[i])), &number)) {
      return cursor_.ErrorAt(token.offset, "this integer does not fit in 128 bits");
    }
  }
  node->constant = Value::Of(number);
  return node;
}

bool ExpressionParser::AtTupleEnd() const {
  return cursor_.current().kind == TokenKind::kVariableEnd ||
         cursor_.current().kind == TokenKind::kBlockEnd || cursor_.AtOperator(")") ||
         cursor_.AtName("in") || cursor_.AtName("recursive");
}

ExpressionParser::Result ExpressionParser::ParseTupleRest(uint32_t offset, bool in_brackets,
                                                          bool allow_condition) {
  std::vector<ExpressionPointer> items;
  bool is_tuple = false;
  while (!AtTupleEnd()) {
    ASSIGN_OR_RETURN(ExpressionPointer item, Parse(/*allow_tuple=*/false, allow_condition));
    items.push_back(std::move(item));
    if (!cursor_.TakeOperator(",")) {
      break;
    }
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) {
    return std::move(items.front());
  }
  if (items.empty() && !in_brackets) {
    return cursor_.Unexpected("an expression");
  }
  return Make(ExpressionKind::kTuple, offset, std::move(items));
}

ExpressionParser::Result ExpressionParser::ParseListLiteral() {
  RETURN_IF_ERROR(cursor_.Enter());
  const uint32_t offset = cursor_.current().offset;
  cursor_.Advance();
  std::vector<ExpressionPointer> items;
  while (!cursor_.AtOperator("]")) {
    if (!items.empty()) {
      RETURN_IF_ERROR(cursor_.ExpectOperator(","));
    }
    if (cursor_.AtOperator("]")) {
      break;
    }
    ASSIGN_OR_RETURN(ExpressionPointer item, ParseCondition());
    items.push_back(std::move(item));
  }
  cursor_.Advance();
  cursor_.Leave();
  return Make(ExpressionKind::kList, offset, std::move(items));
}

ExpressionParser::Result ExpressionParser::ParseMapLiteral() {
  RETURN_IF_ERROR(cursor_.Enter());
  const uint32_t offset = cursor_.current().offset;
  cursor_.Advance();
  std::vector<ExpressionPointer> items;
  while (!cursor_.AtOperator("}")) {
    if (!items.empty()) {
      RETURN_IF_ERROR(cursor_.ExpectOperator(","));
    }
    if (cursor_.AtOperator("}")) {
      break;
    }
    ASSIGN_OR_RETURN(ExpressionPointer key, ParseCondition());
    RETURN_IF_ERROR(cursor_.ExpectOperator(":"));
    ASSIGN_OR_RETURN(ExpressionPointer value, ParseCondition());
    items.push_back(std::move(key));
    items.push_back(std::move(value));
  }
  cursor_.Advance();
  cursor_.Leave();
  return Make(ExpressionKind::kMap, offset, std::move(items));
}

ExpressionParser::Result ExpressionParser::ParsePostfix(ExpressionPointer node) {
  while (true) {
    if (cursor_.AtOperator(".")) {
      ASSIGN_OR_RETURN(node, ParseAttribute(std::move(node)));
    } else if (cursor_.AtOperator("[")) {
      ASSIGN_OR_RETURN(node, ParseElement(std::move(node)));
    } else if (cursor_.AtOperator("(")) {
      ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

ExpressionParser::Result ExpressionParser::ParseAttribute(ExpressionPointer node) {
  cursor_.Advance();
  const Token& token = cursor_.current();
  if (token.kind == TokenKind::kInteger) {
    ASSIGN_OR_RETURN(ExpressionPointer index, ParseNumber());
    return Make(ExpressionKind::kElement, token.offset,
                Operands(std::move(node), std::move(index)));
  }
  if (token.kind != TokenKind::kName) {
    return cursor_.Unexpected("a name or a number after '.'");
  }
  cursor_.Advance();
  ASSIGN_OR_RETURN(ExpressionPointer attribute,
                   Make(ExpressionKind::kAttribute, token.offset, Operands(std::move(node))));
  attribute->constant = TrustedString(token.value);
  return attribute;
}

ExpressionParser::Result ExpressionParser::ParseElement(ExpressionPointer node) {
  RETURN_IF_ERROR(cursor_.Enter());
  const uint32_t offset = cursor_.current().offset;
  cursor_.Advance();
  std::vector<ExpressionPointer> parts;
  std::vector<ExpressionPointer> items;
  bool is_slice = false;
  while (!cursor_.AtOperator("]")) {
    ExpressionPointer part;
    if (!cursor_.AtOperator(":")) {
      ASSIGN_OR_RETURN(part, ParseCondition());
    }
    if (cursor_.AtOperator(":")) {
      is_slice = true;
      parts.push_back(std::move(part));
      cursor_.Advance();
      continue;
    }
    if (is_slice || !cursor_.AtOperator(",")) {
      parts.push_back(std::move(part));
      break;
    }
    items.push_back(std::move(part));
    cursor_.Advance();
  }
  RETURN_IF_ERROR(cursor_.ExpectOperator("]"));
  cursor_.Leave();
  if (is_slice) {
    if (parts.size() > 3 || !items.empty()) {
      return cursor_.ErrorAt(offset, "a slice has at most a start, a stop and a step");
    }
    parts.resize(3);
    parts.insert(parts.begin(), std::move(node));
    return Make(ExpressionKind::kSlice, offset, std::move(parts));
  }
  std::move(parts.begin(), parts.end(), std::back_inserter(items));
  if (items.empty()) {
    return cursor_.ErrorAt(offset, "expected an index between '[' and ']'");
  }
  if (items.size() > 1) {
    ASSIGN_OR_RETURN(ExpressionPointer tuple,
                     Make(ExpressionKind::kTuple, offset, std::move(items)));
    items = Operands(std::move(tuple));
  }
  items.insert(items.begin(), std::move(node));
  return Make(ExpressionKind::kElement, offset, std::move(items));
}

absl::Status ExpressionParser::ParseOneArgument(CallArguments& arguments, int& height) {
  const uint32_t offset = cursor_.current().offset;
  ExpressionPointer value;
  if (cursor_.TakeOperator("**")) {
    ASSIGN_OR_RETURN(value, ParseCondition());
    height = std::max(height, value->height);
    arguments.star_star = std::move(value);
    return absl::OkStatus();
  }
  if (cursor_.TakeOperator("*")) {
    ASSIGN_OR_RETURN(value, ParseCondition());
    height = std::max(height, value->height);
    arguments.star = std::move(value);
    return absl::OkStatus();
  }
  const bool is_keyword = cursor_.current().kind == TokenKind::kName &&
                          cursor_.next().kind == TokenKind::kOperator &&
                          cursor_.next().value == "=";
  const std::string name = is_keyword ? cursor_.current().value : "";
  if (is_keyword) {
    cursor_.Advance();
    cursor_.Advance();
  } else if (!arguments.keywords.empty() || arguments.star_star != nullptr) {
    return cursor_.ErrorAt(offset, "an argument without a name follows one with a name");
  }
  ASSIGN_OR_RETURN(value, ParseCondition());
  height = std::max(height, value->height);
  if (is_keyword) {
    arguments.keywords.emplace_back(TrustedString(name), std::move(value));
  } else {
    arguments.positional.push_back(std::move(value));
  }
  return absl::OkStatus();
}

absl::Status ExpressionParser::ParseArguments(CallArguments& arguments, int& height) {
  RETURN_IF_ERROR(cursor_.Enter());
  RETURN_IF_ERROR(cursor_.ExpectOperator("("));
  bool needs_comma = false;
  while (!cursor_.AtOperator(")")) {
    if (needs_comma) {
      RETURN_IF_ERROR(cursor_.ExpectOperator(","));
      if (cursor_.AtOperator(")")) {
        break;
      }
    }
    RETURN_IF_ERROR(ParseOneArgument(arguments, height));
    needs_comma = true;
  }
  cursor_.Advance();
  cursor_.Leave();
  return absl::OkStatus();
}

ExpressionParser::Result ExpressionParser::ParseCall(ExpressionPointer node) {
  const uint32_t offset = cursor_.current().offset;
  auto arguments = std::make_unique<CallArguments>();
  int height = node->height;
  RETURN_IF_ERROR(ParseArguments(*arguments, height));
  ASSIGN_OR_RETURN(ExpressionPointer call,
                   Make(ExpressionKind::kCall, offset, Operands(std::move(node))));
  call->height = height + 1;
  call->arguments = std::move(arguments);
  RETURN_IF_ERROR(Raise(*call, nullptr));
  return call;
}

}  // namespace trireme::text::jinja

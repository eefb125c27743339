#include "runtime/text/jinja_interpreter.h"

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_arithmetic.h"
#include "runtime/text/jinja_comparison.h"
#include "runtime/text/jinja_elements.h"
#include "runtime/text/jinja_filters.h"
#include "runtime/text/jinja_functions.h"
#include "runtime/text/jinja_lexer.h"
#include "runtime/text/jinja_methods.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_tests.h"

namespace trireme::text::jinja {

Interpreter::Interpreter(const SyntaxTree& tree, Runtime& runtime)
    : tree_(tree),
      runtime_(runtime),
      globals_(tree.symbols.size()),
      has_global_(tree.symbols.size(), 0) {
  for (const FunctionEntry& entry : GlobalFunctions()) {
    SetVariable(entry.name, Value::Of(runtime_.New<Function>(entry)));
  }
}

void Interpreter::SetVariable(std::string_view name, Value value) {
  const auto found = tree_.symbol_numbers.find(ToAbseil(name));
  if (found != tree_.symbol_numbers.end()) {
    Set(found->second, std::move(value), root_);
  }
}

absl::StatusOr<TracedText> Interpreter::Run() {
  TracedText out;
  RETURN_IF_ERROR(Execute(tree_.body, root_, out).status());
  return out;
}

absl::Status Interpreter::WithPlace(absl::Status status, uint32_t offset) {
  if (has_place_) {
    return status;
  }
  has_place_ = true;
  absl::Status placed(status.code(), Joined("chat template, ", PlaceOf(tree_.source, offset), ": ",
                                            status.message()));
  status.ForEachPayload([&placed](absl::string_view url, const absl::Cord& payload) {
    placed.SetPayload(url, payload);
  });
  return placed;
}

absl::Status Interpreter::CheckDepth() const {
  if (depth_ > runtime_.limits().depth_max) {
    return absl::ResourceExhaustedError(
        Joined("the template nests calls and blocks deeper than the limit of ",
               runtime_.limits().depth_max, "; it may call itself without end"));
  }
  return absl::OkStatus();
}

void Interpreter::Set(int symbol, Value value, Scope& scope) {
  if (&scope == &root_) {
    globals_[static_cast<size_t>(symbol)] = std::move(value);
    has_global_[static_cast<size_t>(symbol)] = 1;
    return;
  }
  // Small scopes are the rule; the charge keeps a scope of many thousand variables from costing
  // more than it says.
  runtime_.Charge(static_cast<int64_t>(scope.variables.size() / 16));
  for (auto& [known, known_value] : scope.variables) {
    if (known == symbol) {
      known_value = std::move(value);
      return;
    }
  }
  runtime_.Charge(1);
  scope.variables.emplace_back(symbol, std::move(value));
}

const Value* Interpreter::Find(int symbol, const Scope& scope) const {
  for (const Scope* level = &scope; level != &root_; level = level->parent) {
    runtime_.Charge(static_cast<int64_t>(level->variables.size() / 16));
    for (const auto& [known, value] : level->variables) {
      if (known == symbol) {
        return &value;
      }
    }
  }
  const size_t index = static_cast<size_t>(symbol);
  return has_global_[index] != 0 ? &globals_[index] : nullptr;
}

Interpreter::ValueResult Interpreter::Evaluate(const Expression& expression, Scope& scope) {
  DepthGuard guard(*this);
  absl::Status status = CheckDepth();
  status.Update(runtime_.Spend(1));
  if (status.ok()) {
    ValueResult result = EvaluateNode(expression, scope);
    if (result.ok()) {
      return result;
    }
    status = std::move(result).status();
  }
  return WithPlace(std::move(status), expression.offset);
}

Interpreter::ValueResult Interpreter::EvaluateNode(const Expression& expression, Scope& scope) {
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return EvaluateName(expression, scope);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return EvaluateItems(expression, scope);
    case ExpressionKind::kMap:
      return EvaluateMap(expression, scope);
    case ExpressionKind::kAttribute:
      return EvaluateAttribute(expression, scope);
    case ExpressionKind::kElement:
      return EvaluateElement(expression, scope);
    case ExpressionKind::kSlice:
      return EvaluateSlice(expression, scope);
    case ExpressionKind::kCall:
      return EvaluateCall(expression, scope);
    case ExpressionKind::kFilter:
      return EvaluateFilter(expression, scope);
    case ExpressionKind::kTest:
      return EvaluateTest(expression, scope);
    case ExpressionKind::kNot:
    case ExpressionKind::kNegative:
    case ExpressionKind::kPositive:
      return EvaluateUnary(expression, scope);
    case ExpressionKind::kBinary:
      return EvaluateBinary(expression, scope);
    case ExpressionKind::kCompare:
      return EvaluateComparison(expression, scope);
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
      return EvaluateLogic(expression, scope);
    case ExpressionKind::kConcatenate:
      return EvaluateConcatenation(expression, scope);
    case ExpressionKind::kCondition:
      return EvaluateCondition(expression, scope);
  }
  return absl::InternalError("unknown kind of expression");
}

Interpreter::ValueResult Interpreter::EvaluateName(const Expression& expression, Scope& scope) {
  const Value* found = Find(expression.symbol, scope);
  if (found != nullptr) {
    return *found;
  }
  RETURN_IF_ERROR(runtime_.Spend(2));
  return Value::Undefined(std::make_shared<const UndefinedData>(
      UndefinedData{UndefinedData::Reason::kVariable, "", expression.constant}));
}

Interpreter::ValueResult Interpreter::EvaluateItems(const Expression& expression, Scope& scope) {
  std::vector<Value> items;
  items.reserve(expression.operands.size());
  for (const ExpressionPointer& operand : expression.operands) {
    ASSIGN_OR_RETURN(Value item, Evaluate(*operand, scope));
    items.push_back(std::move(item));
  }
  return runtime_.List(std::move(items), expression.kind == ExpressionKind::kList
                                             ? SequenceFlavor::kList
                                             : SequenceFlavor::kTuple);
}

Interpreter::ValueResult Interpreter::EvaluateMap(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(Map * map, runtime_.NewMap());
  for (size_t i = 0; i + 1 < expression.operands.size(); i += 2) {
    ASSIGN_OR_RETURN(const Value key, Evaluate(*expression.operands[i], scope));
    ASSIGN_OR_RETURN(const Value value, Evaluate(*expression.operands[i + 1], scope));
    if (!IsHashable(key)) {
      return TemplateError("unhashable type: '", TypeName(key), "' cannot be a key");
    }
    RETURN_IF_ERROR(
        runtime_.Spend(2 + (key.IsString() ? 0 : static_cast<int64_t>(map->entries.size()))));
    map->Set(key, value);
  }
  return Value::Of(map);
}

Interpreter::ValueResult Interpreter::EvaluateAttribute(const Expression& expression,
                                                        Scope& scope) {
  ASSIGN_OR_RETURN(const Value owner, Evaluate(*expression.operands[0], scope));
  return Attribute(runtime_, owner, expression.constant);
}

Interpreter::ValueResult Interpreter::EvaluateElement(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value owner, Evaluate(*expression.operands[0], scope));
  ASSIGN_OR_RETURN(const Value key, Evaluate(*expression.operands[1], scope));
  return ElementOrAttribute(runtime_, owner, key);
}

Interpreter::ValueResult Interpreter::EvaluateSlice(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value owner, Evaluate(*expression.operands[0], scope));
  Value bounds[3] = {Value::None(), Value::None(), Value::None()};
  for (size_t i = 0; i < 3; ++i) {
    if (expression.operands[i + 1] != nullptr) {
      ASSIGN_OR_RETURN(bounds[i], Evaluate(*expression.operands[i + 1], scope));
    }
  }
  return Slice(runtime_, owner, bounds[0], bounds[1], bounds[2]);
}

absl::Status Interpreter::AddStarArguments(const CallArguments& source, Scope& scope,
                                           Arguments& arguments) {
  if (source.star != nullptr) {
    ASSIGN_OR_RETURN(const Value star, Evaluate(*source.star, scope));
    ASSIGN_OR_RETURN(const std::vector<Value> items, runtime_.Iterate(star));
    arguments.positional.insert(arguments.positional.end(), items.begin(), items.end());
  }
  if (source.star_star != nullptr) {
    ASSIGN_OR_RETURN(const Value star_star, Evaluate(*source.star_star, scope));
    const Map* map = star_star.AsMap();
    if (map == nullptr) {
      return TemplateError("'**' needs a mapping, not ", TypeName(star_star));
    }
    for (const auto& [key, value] : map->entries) {
      RETURN_IF_ERROR(runtime_.Spend(2));
      if (!key.IsString()) {
        return TemplateError("'**' needs a mapping with strings as keys");
      }
      arguments.keywords.emplace_back(key, value);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Arguments> Interpreter::EvaluateArguments(const CallArguments& arguments,
                                                         Scope& scope) {
  Arguments evaluated;
  for (const ExpressionPointer& argument : arguments.positional) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*argument, scope));
    evaluated.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : arguments.keywords) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*argument, scope));
    evaluated.keywords.emplace_back(name, std::move(value));
  }
  RETURN_IF_ERROR(AddStarArguments(arguments, scope, evaluated));
  return evaluated;
}

Interpreter::ValueResult Interpreter::EvaluateCall(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*expression.operands[0], scope));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(*expression.arguments, scope));
  return Call(callee, std::move(arguments));
}

Interpreter::ValueResult Interpreter::Call(const Value& callee, Arguments arguments) {
  switch (callee.kind()) {
    case Kind::kUndefined:
      return TemplateError(UndefinedMessage(callee));
    case Kind::kMacro:
      return CallMacro(*static_cast<const Macro*>(callee.object()), std::move(arguments));
    case Kind::kFunction:
      return static_cast<const Function*>(callee.object())->entry.function(runtime_, arguments);
    case Kind::kMethod: {
      const Method* method = static_cast<const Method*>(callee.object());
      return method->entry.function(runtime_, method->self, arguments);
    }
    case Kind::kLoop:
      return CallLoop(callee, arguments);
    case Kind::kJoiner: {
      Joiner* joiner = static_cast<Joiner*>(callee.object());
      if (std::exchange(joiner->used, true)) {
        return joiner->separator;
      }
      return runtime_.String("", Origin::kTrusted);
    }
    default:
      return TemplateError("a value of type '", TypeName(callee), "' cannot be called");
  }
}

Interpreter::ValueResult Interpreter::CallLoop(const Value& callee, const Arguments& arguments) {
  const Loop* loop = static_cast<const Loop*>(callee.object());
  if (loop->recursive_statement == nullptr) {
    return TemplateError("'loop' can be called only in a loop marked 'recursive'");
  }
  if (arguments.positional.size() != 1) {
    return TemplateError("'loop' takes the items to go through");
  }
  TracedText out;
  const Statement& statement = *static_cast<const Statement*>(loop->recursive_statement);
  RETURN_IF_ERROR(RunLoop(statement, arguments.positional[0], loop->depth + 1,
                          *static_cast<Scope*>(loop->scope), out)
                      .status());
  return runtime_.String(std::move(out));
}

Interpreter::ValueResult Interpreter::EvaluateFilter(const Expression& expression, Scope& scope) {
  Value input = block_text_;
  if (expression.operands[0] != nullptr) {
    ASSIGN_OR_RETURN(input, Evaluate(*expression.operands[0], scope));
  }
  ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(*expression.arguments, scope));
  return ApplyFilter(runtime_, expression.constant.bytes(), input, arguments);
}

Interpreter::ValueResult Interpreter::FilterBlockText(const Expression& filter, Value text,
                                                      Scope& scope) {
  std::swap(block_text_, text);
  ValueResult result = Evaluate(filter, scope);
  std::swap(block_text_, text);
  return result;
}

Interpreter::ValueResult Interpreter::EvaluateTest(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value subject, Evaluate(*expression.operands[0], scope));
  const TestFunction test = FindTest(expression.constant.bytes());
  if (test == nullptr) {
    return TemplateError("there is no test named '", expression.constant.bytes(), "'");
  }
  ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(*expression.arguments, scope));
  ASSIGN_OR_RETURN(const bool holds, test(runtime_, subject, arguments));
  return Value::Boolean(holds);
}

Interpreter::ValueResult Interpreter::EvaluateUnary(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value operand, Evaluate(*expression.operands[0], scope));
  if (expression.kind == ExpressionKind::kNot) {
    return Value::Boolean(!IsTrue(operand));
  }
  if (expression.kind == ExpressionKind::kNegative) {
    return Negate(operand);
  }
  RETURN_IF_ERROR(RequireDefined(operand));
  if (!operand.IsNumber()) {
    return TemplateError("unary + needs a number, not ", TypeName(operand));
  }
  return operand.Is(Kind::kFloat) ? operand : Value::Of(operand.AsInteger());
}

Interpreter::ValueResult Interpreter::EvaluateBinary(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value left, Evaluate(*expression.operands[0], scope));
  ASSIGN_OR_RETURN(const Value right, Evaluate(*expression.operands[1], scope));
  return Arithmetic(runtime_, expression.operators[0], left, right);
}

Interpreter::ValueResult Interpreter::EvaluateComparison(const Expression& expression,
                                                         Scope& scope) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*expression.operands[0], scope));
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    ASSIGN_OR_RETURN(Value right, Evaluate(*expression.operands[i + 1], scope));
    ASSIGN_OR_RETURN(const bool holds, Compare(runtime_, expression.operators[i], left, right));
    if (!holds) {
      return Value::Boolean(false);
    }
    left = std::move(right);
  }
  return Value::Boolean(true);
}

Interpreter::ValueResult Interpreter::EvaluateLogic(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*expression.operands[0], scope));
  const bool is_decided = IsTrue(left) == (expression.kind == ExpressionKind::kOr);
  if (is_decided) {
    return left;
  }
  return Evaluate(*expression.operands[1], scope);
}

Interpreter::ValueResult Interpreter::EvaluateConcatenation(const Expression& expression,
                                                            Scope& scope) {
  std::vector<Value> parts;
  parts.reserve(expression.operands.size());
  for (const ExpressionPointer& operand : expression.operands) {
    ASSIGN_OR_RETURN(Value part, Evaluate(*operand, scope));
    parts.push_back(std::move(part));
  }
  return Concatenate(runtime_, parts);
}

Interpreter::ValueResult Interpreter::EvaluateCondition(const Expression& expression,
                                                        Scope& scope) {
  ASSIGN_OR_RETURN(const Value condition, Evaluate(*expression.operands[0], scope));
  if (IsTrue(condition)) {
    return Evaluate(*expression.operands[1], scope);
  }
  if (expression.operands[2] != nullptr) {
    return Evaluate(*expression.operands[2], scope);
  }
  return Value();
}

}  // namespace trireme::text::jinja

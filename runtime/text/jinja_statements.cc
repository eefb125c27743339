#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_functions.h"
#include "runtime/text/jinja_interpreter.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_strings.h"

namespace trireme::text::jinja {

Interpreter::BlockScope::BlockScope(Interpreter& interpreter, Scope& parent)
    : interpreter_(interpreter), parent_(parent), scope_(nullptr), captures_before_(0) {
  Renew();
}

Interpreter::BlockScope::~BlockScope() { Release(); }

void Interpreter::BlockScope::Release() {
  if (scope_ != nullptr && interpreter_.captures_ == captures_before_) {
    scope_->variables.clear();
    interpreter_.free_scopes_.push_back(scope_);
  }
}

void Interpreter::BlockScope::Renew() {
  Release();
  captures_before_ = interpreter_.captures_;
  if (interpreter_.free_scopes_.empty()) {
    interpreter_.scopes_.push_back(std::make_unique<Scope>());
    scope_ = interpreter_.scopes_.back().get();
  } else {
    scope_ = interpreter_.free_scopes_.back();
    interpreter_.free_scopes_.pop_back();
  }
  scope_->parent = &parent_;
}

Interpreter::FlowResult Interpreter::Execute(const Body& body, Scope& scope, TracedText& out) {
  DepthGuard guard(*this);
  for (const StatementPointer& statement : body) {
    absl::Status status = CheckDepth();
    status.Update(runtime_.Spend(1));
    if (!status.ok()) {
      return WithPlace(std::move(status), statement->offset);
    }
    FlowResult flow = ExecuteOne(*statement, scope, out);
    if (!flow.ok()) {
      return WithPlace(std::move(flow).status(), statement->offset);
    }
    if (*flow != Flow::kNormal) {
      return flow;
    }
  }
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteOne(const Statement& statement, Scope& scope,
                                                TracedText& out) {
  switch (statement.kind) {
    case StatementKind::kText:
      RETURN_IF_ERROR(Write(statement.text, out));
      return Flow::kNormal;
    case StatementKind::kPrint:
      RETURN_IF_ERROR(Print(statement, scope, out));
      return Flow::kNormal;
    case StatementKind::kIf:
      return ExecuteIf(statement, scope, out);
    case StatementKind::kFor:
      return ExecuteFor(statement, scope, out);
    case StatementKind::kSet:
      RETURN_IF_ERROR(ExecuteSet(statement, scope));
      return Flow::kNormal;
    case StatementKind::kSetBlock:
      return ExecuteSetBlock(statement, scope);
    case StatementKind::kMacro: {
      ASSIGN_OR_RETURN(Value macro, MakeMacro(statement, scope));
      Set(statement.symbol, std::move(macro), scope);
      return Flow::kNormal;
    }
    case StatementKind::kCallBlock:
      RETURN_IF_ERROR(ExecuteCallBlock(statement, scope, out));
      return Flow::kNormal;
    case StatementKind::kFilterBlock:
      return ExecuteFilterBlock(statement, scope, out);
    case StatementKind::kWith:
      return ExecuteWith(statement, scope, out);
    case StatementKind::kScope: {
      BlockScope inner(*this, scope);
      return Execute(statement.body, *inner, out);
    }
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return absl::InternalError("unknown kind of statement");
}

absl::Status Interpreter::Write(const TracedText& text, TracedText& out) {
  RETURN_IF_ERROR(runtime_.SpendGrowth(out, text.footprint()));
  if (text.size() > runtime_.limits().output_bytes_max - out.size()) {
    return absl::ResourceExhaustedError(Joined("the output is longer than the limit of ",
                                               runtime_.limits().output_bytes_max, " bytes"));
  }
  out.Append(text);
  return absl::OkStatus();
}

absl::Status Interpreter::Print(const Statement& statement, Scope& scope, TracedText& out) {
  for (const ExpressionPointer& expression : statement.expressions) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*expression, scope));
    const bool is_text = value.IsString() && value.string().flavor != StringFlavor::kBytes;
    if (is_text) {
      RETURN_IF_ERROR(Write(value.text(), out));
      continue;
    }
    ASSIGN_OR_RETURN(const TracedText text, ToText(runtime_, value));
    RETURN_IF_ERROR(Write(text, out));
  }
  return absl::OkStatus();
}

Interpreter::FlowResult Interpreter::ExecuteIf(const Statement& statement, Scope& scope,
                                               TracedText& out) {
  for (const Branch& branch : statement.branches) {
    ASSIGN_OR_RETURN(const Value condition, Evaluate(*branch.condition, scope));
    if (IsTrue(condition)) {
      return Execute(branch.body, scope, out);
    }
  }
  return Execute(statement.otherwise, scope, out);
}

Interpreter::FlowResult Interpreter::ExecuteFor(const Statement& statement, Scope& scope,
                                                TracedText& out) {
  ASSIGN_OR_RETURN(const Value source, Evaluate(*statement.expressions[0], scope));
  return RunLoop(statement, source, 0, scope, out);
}

absl::StatusOr<std::vector<Value>> Interpreter::LoopItems(const Statement& statement,
                                                          const Value& source, Scope& scope) {
  ASSIGN_OR_RETURN(std::vector<Value> items, runtime_.Iterate(source));
  if (statement.condition == nullptr) {
    return items;
  }
  std::vector<Value> kept;
  BlockScope inner(*this, scope);
  for (Value& item : items) {
    RETURN_IF_ERROR(runtime_.Spend(1));
    inner.Renew();
    RETURN_IF_ERROR(Assign(statement.targets[0], item, *inner));
    ASSIGN_OR_RETURN(const Value condition, Evaluate(*statement.condition, *inner));
    if (IsTrue(condition)) {
      kept.push_back(std::move(item));
    }
  }
  return kept;
}

Interpreter::FlowResult Interpreter::RunLoop(const Statement& statement, const Value& source,
                                             int depth, Scope& scope, TracedText& out) {
  ASSIGN_OR_RETURN(std::vector<Value> items, LoopItems(statement, source, scope));
  BlockScope inner(*this, scope);
  if (items.empty()) {
    return Execute(statement.otherwise, *inner, out);
  }
  RETURN_IF_ERROR(runtime_.SpendBytes(sizeof(Loop)));
  Loop* loop = runtime_.New<Loop>();
  loop->items = std::move(items);
  loop->depth = depth;
  if (statement.is_recursive) {
    loop->recursive_statement = &statement;
    loop->scope = &scope;
    ++captures_;
  }
  for (; loop->index < static_cast<int64_t>(loop->items.size()); ++loop->index) {
    inner.Renew();
    RETURN_IF_ERROR(
        Assign(statement.targets[0], loop->items[static_cast<size_t>(loop->index)], *inner));
    Set(kLoopSymbol, Value::Of(loop), *inner);
    ASSIGN_OR_RETURN(const Flow flow, Execute(statement.body, *inner, out));
    if (flow == Flow::kBreak) {
      break;
    }
  }
  return Flow::kNormal;
}

absl::Status Interpreter::ExecuteSet(const Statement& statement, Scope& scope) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expressions[0], scope));
  return Assign(statement.targets[0], value, scope);
}

Interpreter::FlowResult Interpreter::ExecuteSetBlock(const Statement& statement, Scope& scope) {
  TracedText text;
  Value value;
  Flow flow = Flow::kNormal;
  {
    BlockScope inner(*this, scope);
    ASSIGN_OR_RETURN(flow, Execute(statement.body, *inner, text));
    ASSIGN_OR_RETURN(value, runtime_.String(std::move(text)));
    if (statement.filter != nullptr) {
      ASSIGN_OR_RETURN(value, FilterBlockText(*statement.filter, value, *inner));
    }
  }
  if (flow == Flow::kNormal) {
    RETURN_IF_ERROR(Assign(statement.targets[0], value, scope));
  }
  return flow;
}

Interpreter::FlowResult Interpreter::ExecuteFilterBlock(const Statement& statement, Scope& scope,
                                                        TracedText& out) {
  TracedText text;
  BlockScope inner(*this, scope);
  ASSIGN_OR_RETURN(const Flow flow, Execute(statement.body, *inner, text));
  if (flow != Flow::kNormal) {
    return flow;
  }
  ASSIGN_OR_RETURN(Value value, runtime_.String(std::move(text)));
  ASSIGN_OR_RETURN(value, FilterBlockText(*statement.filter, std::move(value), *inner));
  ASSIGN_OR_RETURN(const TracedText filtered, ToText(runtime_, value));
  RETURN_IF_ERROR(Write(filtered, out));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteWith(const Statement& statement, Scope& scope,
                                                 TracedText& out) {
  BlockScope inner(*this, scope);
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expressions[i], scope));
    RETURN_IF_ERROR(Assign(statement.targets[i], value, *inner));
  }
  return Execute(statement.body, *inner, out);
}

absl::Status Interpreter::ExecuteCallBlock(const Statement& statement, Scope& scope,
                                           TracedText& out) {
  const Expression& call = *statement.expressions[0];
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*call.operands[0], scope));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(*call.arguments, scope));
  ASSIGN_OR_RETURN(Value caller, MakeMacro(statement, scope));
  arguments.keywords.emplace_back(statement.name, std::move(caller));
  ASSIGN_OR_RETURN(const Value result, Call(callee, std::move(arguments)));
  ASSIGN_OR_RETURN(const TracedText text, ToText(runtime_, result));
  return Write(text, out);
}

absl::Status Interpreter::AssignAttribute(const Target& target, const Value& value, Scope& scope) {
  const Value* owner = Find(target.symbol, scope);
  if (owner == nullptr || !owner->Is(Kind::kNamespace)) {
    return TemplateError("cannot set the attribute '", target.attribute.bytes(), "' of '",
                         target.name.bytes(), "', which is ",
                         owner == nullptr ? "undefined" : TypeName(*owner),
                         ": only a namespace() can be changed");
  }
  RETURN_IF_ERROR(CheckNamespaceName(target.attribute.bytes()));
  static_cast<Namespace*>(owner->object())->attributes.Set(target.attribute, value);
  return absl::OkStatus();
}

absl::Status Interpreter::Assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.is_tuple) {
    if (!target.attribute.IsUndefined()) {
      return AssignAttribute(target, value, scope);
    }
    Set(target.symbol, value, scope);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(value.IsUndefined() ? TemplateError(UndefinedMessage(value)) : absl::OkStatus());
  ASSIGN_OR_RETURN(const std::vector<Value> parts, runtime_.Iterate(value));
  if (parts.size() != target.elements.size()) {
    return TemplateError("cannot give ", parts.size(), " values to ", target.elements.size(),
                         " variables");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    RETURN_IF_ERROR(Assign(target.elements[i], parts[i], scope));
  }
  return absl::OkStatus();
}

Interpreter::ValueResult Interpreter::MakeMacro(const Statement& statement, Scope& scope) {
  RETURN_IF_ERROR(runtime_.SpendBytes(sizeof(Macro) + sizeof(Scope)));  // which it keeps
  ++captures_;
  return Value::Of(runtime_.New<Macro>(statement, scope));
}

absl::Status Interpreter::BindParameters(const Macro& macro, Arguments& arguments, Scope& scope) {
  const std::vector<Parameter>& parameters = macro.statement.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const auto keyword = std::find_if(
        arguments.keywords.begin(), arguments.keywords.end(),
        [&parameter](const auto& entry) { return entry.first.bytes() == parameter.name.bytes(); });
    const bool is_positional = i < arguments.positional.size();
    if (keyword != arguments.keywords.end()) {
      if (is_positional) {
        return TemplateError("macro '", macro.statement.name.bytes(), "' got two values for '",
                             parameter.name.bytes(), "'");
      }
      Set(parameter.symbol, keyword->second, scope);
      arguments.keywords.erase(keyword);
    } else if (is_positional) {
      Set(parameter.symbol, arguments.positional[i], scope);
    } else if (parameter.default_value != nullptr) {
      ASSIGN_OR_RETURN(Value value, Evaluate(*parameter.default_value, scope));
      Set(parameter.symbol, std::move(value), scope);
    } else {
      Set(parameter.symbol,
          Value::Undefined(std::make_shared<const UndefinedData>(
              UndefinedData{UndefinedData::Reason::kVariable, "", parameter.name})),
          scope);
    }
  }
  return absl::OkStatus();
}

absl::Status Interpreter::BindSpecialNames(const Statement& statement, Arguments& arguments,
                                           Scope& scope) {
  const size_t parameters = statement.parameters.size();
  if (statement.uses_varargs) {
    const size_t used = std::min(parameters, arguments.positional.size());
    std::vector<Value> rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used),
                            arguments.positional.end());
    ASSIGN_OR_RETURN(Value tuple, runtime_.List(std::move(rest), SequenceFlavor::kTuple));
    Set(kVarargsSymbol, std::move(tuple), scope);
  } else if (arguments.positional.size() > parameters) {
    return TemplateError("macro '", statement.name.bytes(), "' takes at most ", parameters,
                         " arguments, got ", arguments.positional.size());
  }
  if (statement.uses_caller && statement.kind == StatementKind::kMacro) {
    const auto caller =
        std::find_if(arguments.keywords.begin(), arguments.keywords.end(),
                     [](const auto& entry) { return entry.first.bytes() == "caller"; });
    if (caller != arguments.keywords.end()) {
      Set(kCallerSymbol, caller->second, scope);
      arguments.keywords.erase(caller);
    }
  }
  if (statement.uses_kwargs) {
    ASSIGN_OR_RETURN(Map * rest, runtime_.NewMap());
    for (const auto& [name, value] : arguments.keywords) {
      RETURN_IF_ERROR(runtime_.Spend(4));
      rest->Set(name, value);
    }
    Set(kKwargsSymbol, Value::Of(rest), scope);
  } else if (!arguments.keywords.empty()) {
    return TemplateError("macro '", statement.name.bytes(), "' has no parameter '",
                         arguments.keywords.front().first.bytes(), "'");
  }
  return absl::OkStatus();
}

Interpreter::ValueResult Interpreter::CallMacro(const Macro& macro, Arguments arguments) {
  RETURN_IF_ERROR(CheckDepth());
  BlockScope inner(*this, macro.scope);
  RETURN_IF_ERROR(BindParameters(macro, arguments, *inner));
  RETURN_IF_ERROR(BindSpecialNames(macro.statement, arguments, *inner));
  TracedText out;
  RETURN_IF_ERROR(Execute(macro.statement.body, *inner, out).status());
  return runtime_.String(std::move(out));
}

}  // namespace trireme::text::jinja

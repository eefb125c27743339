// The interpreter of chat templates: walks a syntax tree and writes text. One rendering, one
// thread, one Interpreter.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_INTERPRETER_H_
#define TRIREME_RUNTIME_TEXT_JINJA_INTERPRETER_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/text/jinja_runtime.h"
#include "runtime/text/jinja_syntax.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

class Interpreter {
 public:
  // Both outlive the interpreter.
  Interpreter(const SyntaxTree& tree, Runtime& runtime);

  // Makes a variable visible to the whole template.
  void SetVariable(std::string_view name, Value value);

  // The text. Errors name line and column; RaisedMessage (jinja_functions.h) tells those that the
  // template raised itself.
  absl::StatusOr<TracedText> Run();

 private:
  // The variables that one block has set. Blocks within see those around them.
  struct Scope {
    std::vector<std::pair<int, Value>> variables;
    Scope* parent = nullptr;
  };
  // A macro, or the body of a call block, with the scope it was written in.
  struct Macro : Object {
    Macro(const Statement& macro_statement, Scope& macro_scope)
        : Object(Kind::kMacro), statement(macro_statement), scope(macro_scope) {}
    const Statement& statement;
    Scope& scope;
  };
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };
  using ValueResult = absl::StatusOr<Value>;
  using FlowResult = absl::StatusOr<Flow>;

  // Counts nested evaluations while it lives.
  class DepthGuard {
   public:
    explicit DepthGuard(Interpreter& interpreter) : depth_(interpreter.depth_) { ++depth_; }
    ~DepthGuard() { --depth_; }

   private:
    int& depth_;
  };

  // A scope for one block; given back at the end unless a macro or recursive loop may still see it.
  class BlockScope {
   public:
    BlockScope(Interpreter& interpreter, Scope& parent);
    ~BlockScope();
    Scope& operator*() { return *scope_; }
    // Empty again, for the next round of a loop.
    void Renew();

   private:
    void Release();
    Interpreter& interpreter_;
    Scope& parent_;
    Scope* scope_;
    int64_t captures_before_;
  };

  absl::Status WithPlace(absl::Status status, uint32_t offset);
  absl::Status CheckDepth() const;

  // Statements (jinja_statements.cc).
  FlowResult Execute(const Body& body, Scope& scope, TracedText& out);
  FlowResult ExecuteOne(const Statement& statement, Scope& scope, TracedText& out);
  absl::Status Print(const Statement& statement, Scope& scope, TracedText& out);
  absl::Status Write(const TracedText& text, TracedText& out);
  FlowResult ExecuteIf(const Statement& statement, Scope& scope, TracedText& out);
  FlowResult ExecuteFor(const Statement& statement, Scope& scope, TracedText& out);
  absl::StatusOr<std::vector<Value>> LoopItems(const Statement& statement, const Value& source,
                                               Scope& scope);
  FlowResult RunLoop(const Statement& statement, const Value& source, int depth, Scope& scope,
                     TracedText& out);
  absl::Status ExecuteSet(const Statement& statement, Scope& scope);
  FlowResult ExecuteSetBlock(const Statement& statement, Scope& scope);
  FlowResult ExecuteFilterBlock(const Statement& statement, Scope& scope, TracedText& out);
  FlowResult ExecuteWith(const Statement& statement, Scope& scope, TracedText& out);
  absl::Status ExecuteCallBlock(const Statement& statement, Scope& scope, TracedText& out);
  absl::Status Assign(const Target& target, const Value& value, Scope& scope);
  absl::Status AssignAttribute(const Target& target, const Value& value, Scope& scope);
  ValueResult MakeMacro(const Statement& statement, Scope& scope);
  ValueResult CallMacro(const Macro& macro, Arguments arguments);
  absl::Status BindParameters(const Macro& macro, Arguments& arguments, Scope& scope);
  absl::Status BindSpecialNames(const Statement& statement, Arguments& arguments, Scope& scope);

  // Variables.
  void Set(int symbol, Value value, Scope& scope);
  const Value* Find(int symbol, const Scope& scope) const;

  // Expressions (jinja_interpreter.cc).
  ValueResult Evaluate(const Expression& expression, Scope& scope);
  ValueResult EvaluateNode(const Expression& expression, Scope& scope);
  ValueResult EvaluateName(const Expression& expression, Scope& scope);
  ValueResult EvaluateItems(const Expression& expression, Scope& scope);
  ValueResult EvaluateMap(const Expression& expression, Scope& scope);
  ValueResult EvaluateAttribute(const Expression& expression, Scope& scope);
  ValueResult EvaluateElement(const Expression& expression, Scope& scope);
  ValueResult EvaluateSlice(const Expression& expression, Scope& scope);
  ValueResult EvaluateCall(const Expression& expression, Scope& scope);
  ValueResult EvaluateFilter(const Expression& expression, Scope& scope);
  ValueResult EvaluateTest(const Expression& expression, Scope& scope);
  ValueResult EvaluateUnary(const Expression& expression, Scope& scope);
  ValueResult EvaluateBinary(const Expression& expression, Scope& scope);
  ValueResult EvaluateComparison(const Expression& expression, Scope& scope);
  ValueResult EvaluateLogic(const Expression& expression, Scope& scope);
  ValueResult EvaluateConcatenation(const Expression& expression, Scope& scope);
  ValueResult EvaluateCondition(const Expression& expression, Scope& scope);
  // A filter chain of a block, on the block's text.
  ValueResult FilterBlockText(const Expression& filter, Value text, Scope& scope);
  absl::StatusOr<Arguments> EvaluateArguments(const CallArguments& arguments, Scope& scope);
  absl::Status AddStarArguments(const CallArguments& source, Scope& scope, Arguments& arguments);
  ValueResult Call(const Value& callee, Arguments arguments);
  ValueResult CallLoop(const Value& callee, const Arguments& arguments);

  const SyntaxTree& tree_;
  Runtime& runtime_;
  int depth_ = 0;
  bool has_place_ = false;
  // The text a filter block's innermost filter works on.
  Value block_text_;
  // Of macros and recursive loops, which may use their scope later.
  int64_t captures_ = 0;
  // The variables of the template as a whole, by symbol; the flags tell which are set.
  std::vector<Value> globals_;
  std::vector<char> has_global_;
  Scope root_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
};

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_INTERPRETER_H_

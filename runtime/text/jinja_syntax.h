// The syntax tree of a chat template: plain data that the parser makes and the interpreter reads.
// Constant after parsing, so several threads may render one tree.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_SYNTAX_H_
#define TRIREME_RUNTIME_TEXT_JINJA_SYNTAX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

enum class ExpressionKind : uint8_t {
  kConstant,     // constant
  kName,         // name
  kList,         // operands
  kTuple,        // operands
  kMap,          // operands: key, value, key, value, ...
  kAttribute,    // operands[0] . name
  kElement,      // operands[0] [ operands[1] ]
  kSlice,        // operands[0] [ start : stop : step ]; operands 1 to 3, null where left out
  kCall,         // operands[0] ( arguments )
  kFilter,       // operands[0] | name ( arguments ); operands[0] is null in a filter block
  kTest,         // operands[0] is name ( arguments )
  kNot,          // operands[0]
  kNegative,     // operands[0]
  kPositive,     // operands[0]
  kBinary,       // operands[0] operators[0] operands[1]
  kCompare,      // operands[0] operators[0] operands[1] operators[1] operands[2] ...
  kAnd,          // operands[0], operands[1]
  kOr,           // operands[0], operands[1]
  kConcatenate,  // operands
  kCondition,    // operands: condition, value, other value or null
};

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<Value, ExpressionPointer>> keywords;
  ExpressionPointer star;       // *sequence, or null
  ExpressionPointer star_star;  // **mapping, or null
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  uint32_t offset = 0;  // byte in the template
  int height = 1;       // 1 for a leaf
  int symbol = -1;      // of kName, and of no other kind
  Value constant;       // of kConstant; the name as a string for kName, kAttribute, kFilter, kTest
  std::vector<ExpressionPointer> operands;
  std::vector<Operator> operators;
  std::unique_ptr<CallArguments> arguments;  // of kCall; of kFilter and kTest, or null
};

enum class StatementKind : uint8_t {
  kText,         // text
  kPrint,        // expressions
  kIf,           // branches in order, then otherwise
  kFor,          // target, expressions[0], condition, body, otherwise, is_recursive
  kSet,          // target, expressions[0]
  kSetBlock,     // target, filter, body
  kMacro,        // symbol, name, parameters, body
  kCallBlock,    // parameters, expressions[0] (a kCall), body
  kFilterBlock,  // filter, body
  kWith,         // targets, expressions (one each), body
  kScope,        // body in a scope of its own: block, generation, autoescape
  kBreak,
  kContinue,
};

// Where a value goes: a name, a namespace's attribute, or a tuple of targets.
struct Target {
  uint32_t offset = 0;
  int symbol = -1;  // the variable, or the namespace when `attribute` is a string
  Value name;
  Value attribute;               // undefined unless this is a namespace's attribute
  std::vector<Target> elements;  // of a tuple
  bool is_tuple = false;
};

struct Statement;
using StatementPointer = std::unique_ptr<Statement>;
using Body = std::vector<StatementPointer>;

struct Parameter {
  int symbol;
  Value name;
  ExpressionPointer default_value;  // or null
};

struct Branch {
  ExpressionPointer condition;
  Body body;
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  uint32_t offset = 0;
  TracedText text;
  std::vector<ExpressionPointer> expressions;
  ExpressionPointer condition;
  ExpressionPointer filter;
  std::vector<Target> targets;
  std::vector<Parameter> parameters;
  std::vector<Branch> branches;
  Body body;
  Body otherwise;
  int symbol = -1;
  Value name;
  bool is_recursive = false;
  // What the body of a kMacro or kCallBlock names, and so what it may be called with.
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};

// Every variable name has a number; the interpreter's scopes are keyed by it. These names have one
// in every template:
inline constexpr int kLoopSymbol = 0;
inline constexpr int kCallerSymbol = 1;
inline constexpr int kVarargsSymbol = 2;
inline constexpr int kKwargsSymbol = 3;

struct SyntaxTree {
  std::string source;  // line ends are "\n", the last one is dropped
  Body body;
  std::vector<std::string> symbols;
  absl::flat_hash_map<std::string, int> symbol_numbers;  // the way back
};

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_SYNTAX_H_

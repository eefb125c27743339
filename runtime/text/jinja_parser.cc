#include "runtime/text/jinja_parser.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_expression_parser.h"
#include "runtime/text/jinja_lexer.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_token_cursor.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

using EndNames = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  StatementParser(const std::vector<Token>& tokens, SyntaxTree& tree)
      : tree_(tree), cursor_(tokens, tree), expressions_(cursor_) {}

  absl::Status Run() {
    RETURN_IF_ERROR(ParseBody(tree_.body, {}, "", 0));
    return absl::OkStatus();
  }

 private:
  using Result = absl::StatusOr<StatementPointer>;
  using Rule = Result (StatementParser::*)(uint32_t offset);

  struct Tag {
    std::string_view name;
    Rule rule;
  };

  absl::StatusOr<StatementPointer> Make(StatementKind kind, uint32_t offset) {
    RETURN_IF_ERROR(cursor_.CountNode());
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->offset = offset;
    return statement;
  }

  absl::Status ExpectTagEnd() { return cursor_.Expect(TokenKind::kBlockEnd, "the end of the tag"); }

  // Statements up to a tag whose name is in `ends`; stands on that name afterwards. No `ends`: up
  // to the end of the template.
  absl::Status ParseBody(Body& body, EndNames ends, std::string_view opener, uint32_t offset) {
    RETURN_IF_ERROR(cursor_.Enter());
    while (true) {
      const Token& token = cursor_.current();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() != 0) {
          return cursor_.ErrorAt(offset,
                                 Joined("'", opener, "' has no end: the template ends without '",
                                        *(ends.end() - 1), "'"));
        }
        break;
      }
      if (token.kind == TokenKind::kText) {
        ASSIGN_OR_RETURN(StatementPointer text, Make(StatementKind::kText, token.offset));
        text->text = TracedText(token.value, Origin::kTrusted);
        body.push_back(std::move(text));
        cursor_.Advance();
        continue;
      }
      if (token.kind == TokenKind::kVariableBegin) {
        RETURN_IF_ERROR(ParsePrint(body));
        continue;
      }
      cursor_.Advance();
      if (IsOneOf(cursor_.current(), ends)) {
        break;
      }
      ASSIGN_OR_RETURN(StatementPointer statement, ParseTag());
      body.push_back(std::move(statement));
      RETURN_IF_ERROR(ExpectTagEnd());
    }
    cursor_.Leave();
    return absl::OkStatus();
  }

  static bool IsOneOf(const Token& token, EndNames names) {
    for (const std::string_view name : names) {
      if (token.kind == TokenKind::kName && token.value == name) {
        return true;
      }
    }
    return false;
  }

  // Body, then the end tag's name; the end of its tag is the caller's.
  absl::Status ParseBodyAndEnd(Body& body, std::string_view end, std::string_view opener,
                               uint32_t offset) {
    RETURN_IF_ERROR(ExpectTagEnd());
    RETURN_IF_ERROR(ParseBody(body, {end}, opener, offset));
    cursor_.Advance();
    return absl::OkStatus();
  }

  absl::Status ParsePrint(Body& body) {
    ASSIGN_OR_RETURN(StatementPointer print, Make(StatementKind::kPrint, cursor_.current().offset));
    cursor_.Advance();
    ASSIGN_OR_RETURN(ExpressionPointer value, expressions_.Parse(/*allow_tuple=*/true));
    print->expressions.push_back(std::move(value));
    body.push_back(std::move(print));
    return cursor_.Expect(TokenKind::kVariableEnd, "the end of the expression");
  }

  Result ParseTag() {
    static constexpr Tag kTags[] = {
        {"if", &StatementParser::ParseIf},
        {"for", &StatementParser::ParseFor},
        {"set", &StatementParser::ParseSet},
        {"macro", &StatementParser::ParseMacro},
        {"call", &StatementParser::ParseCallBlock},
        {"filter", &StatementParser::ParseFilterBlock},
        {"with", &StatementParser::ParseWith},
        {"block", &StatementParser::ParseBlock},
        {"generation", &StatementParser::ParseGeneration},
        {"autoescape", &StatementParser::ParseAutoescape},
        {"print", &StatementParser::ParsePrintTag},
        {"break", &StatementParser::ParseLoopControl},
        {"continue", &StatementParser::ParseLoopControl},
    };
    const Token& token = cursor_.current();
    if (token.kind != TokenKind::kName) {
      return cursor_.Unexpected("the name of a tag");
    }
    for (const Tag& tag : kTags) {
      if (token.value == tag.name) {
        if (tag.rule != &StatementParser::ParseLoopControl) {
          cursor_.Advance();
        }
        return (this->*tag.rule)(token.offset);
      }
    }
    for (const std::string_view name : {"include", "import", "from", "extends"}) {
      if (token.value == name) {
        return cursor_.ErrorAt(
            token.offset, Joined("'", name, "' is not supported: a chat template is one file"));
      }
    }
    return cursor_.ErrorAt(token.offset, Joined("unknown tag '", token.value, "'"));
  }

  absl::StatusOr<ExpressionPointer> ParseIfCondition() {
    return expressions_.Parse(/*allow_tuple=*/true, /*allow_condition=*/false);
  }

  Result ParseIf(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kIf, offset));
    do {
      Branch& branch = statement->branches.emplace_back();
      ASSIGN_OR_RETURN(branch.condition, ParseIfCondition());
      RETURN_IF_ERROR(ExpectTagEnd());
      RETURN_IF_ERROR(ParseBody(branch.body, {"elif", "else", "endif"}, "if", offset));
    } while (cursor_.TakeName("elif"));
    if (cursor_.TakeName("else")) {
      return WithEnd(std::move(statement), &Statement::otherwise, "endif", "if");
    }
    cursor_.Advance();
    return statement;
  }

  Result WithEnd(StatementPointer statement, Body Statement::*body, std::string_view end,
                 std::string_view opener) {
    RETURN_IF_ERROR(ParseBodyAndEnd((*statement).*body, end, opener, statement->offset));
    return statement;
  }

  Result ParseFor(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kFor, offset));
    ASSIGN_OR_RETURN(Target target, ParseTarget(/*allow_namespace=*/false));
    statement->targets.push_back(std::move(target));
    RETURN_IF_ERROR(cursor_.ExpectName("in"));
    ASSIGN_OR_RETURN(ExpressionPointer items, ParseIfCondition());
    statement->expressions.push_back(std::move(items));
    if (cursor_.TakeName("if")) {
      ASSIGN_OR_RETURN(statement->condition, expressions_.Parse(/*allow_tuple=*/false));
    }
    statement->is_recursive = cursor_.TakeName("recursive");
    RETURN_IF_ERROR(ExpectTagEnd());
    ++open_loops_;
    RETURN_IF_ERROR(ParseBody(statement->body, {"else", "endfor"}, "for", offset));
    --open_loops_;
    if (cursor_.TakeName("else")) {
      return WithEnd(std::move(statement), &Statement::otherwise, "endfor", "for");
    }
    cursor_.Advance();
    return statement;
  }

  absl::StatusOr<Target> ParseTargetName(bool allow_namespace) {
    const Token& token = cursor_.current();
    if (token.kind != TokenKind::kName) {
      return cursor_.Unexpected("the name of a variable");
    }
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (token.value == constant) {
        return cursor_.ErrorAt(token.offset, Joined("'", constant, "' cannot be assigned to"));
      }
    }
    Target target;
    target.offset = token.offset;
    target.symbol = cursor_.Symbol(token.value);
    target.name = TrustedString(token.value);
    cursor_.Advance();
    if (allow_namespace && cursor_.TakeOperator(".")) {
      if (cursor_.current().kind != TokenKind::kName) {
        return cursor_.Unexpected("the name of an attribute");
      }
      target.attribute = TrustedString(cursor_.current().value);
      cursor_.Advance();
    }
    return target;
  }

  // "a", "a, b", "(a, b)", and with `allow_namespace` "ns.a".
  absl::StatusOr<Target> ParseTarget(bool allow_namespace) {
    Target tuple;
    tuple.is_tuple = true;
    tuple.offset = cursor_.current().offset;
    bool has_comma = false;
    while (cursor_.current().kind == TokenKind::kName || cursor_.AtOperator("(") ||
           tuple.elements.empty()) {
      if (cursor_.AtName("in") && !tuple.elements.empty()) {
        break;
      }
      if (cursor_.TakeOperator("(")) {
        RETURN_IF_ERROR(cursor_.Enter());
        ASSIGN_OR_RETURN(Target element, ParseTarget(allow_namespace));
        RETURN_IF_ERROR(cursor_.ExpectOperator(")"));
        cursor_.Leave();
        tuple.elements.push_back(std::move(element));
      } else {
        ASSIGN_OR_RETURN(Target element, ParseTargetName(allow_namespace));
        tuple.elements.push_back(std::move(element));
      }
      if (!cursor_.TakeOperator(",")) {
        break;
      }
      has_comma = true;
    }
    if (tuple.elements.size() == 1 && !has_comma) {
      Target only = std::move(tuple.elements.front());
      return only;
    }
    return tuple;
  }

  Result ParseSet(uint32_t offset) {
    ASSIGN_OR_RETURN(Target target, ParseTarget(/*allow_namespace=*/true));
    if (cursor_.TakeOperator("=")) {
      ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kSet, offset));
      statement->targets.push_back(std::move(target));
      ASSIGN_OR_RETURN(ExpressionPointer value, expressions_.Parse(/*allow_tuple=*/true));
      statement->expressions.push_back(std::move(value));
      return statement;
    }
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kSetBlock, offset));
    statement->targets.push_back(std::move(target));
    if (cursor_.TakeOperator("|")) {
      ASSIGN_OR_RETURN(statement->filter, expressions_.ParseFilterChain());
    }
    return WithEnd(std::move(statement), &Statement::body, "endset", "set");
  }

  absl::Status ParseParameters(std::vector<Parameter>& parameters) {
    RETURN_IF_ERROR(cursor_.ExpectOperator("("));
    while (!cursor_.AtOperator(")")) {
      if (!parameters.empty()) {
        RETURN_IF_ERROR(cursor_.ExpectOperator(","));
      }
      const uint32_t offset = cursor_.current().offset;
      ASSIGN_OR_RETURN(Target target, ParseTargetName(/*allow_namespace=*/false));
      Parameter parameter{target.symbol, target.name, nullptr};
      if (cursor_.TakeOperator("=")) {
        ASSIGN_OR_RETURN(parameter.default_value, expressions_.Parse(/*allow_tuple=*/false));
      } else if (!parameters.empty() && parameters.back().default_value != nullptr) {
        return cursor_.ErrorAt(offset,
                               "a parameter without a default value follows one with a default");
      }
      parameters.push_back(std::move(parameter));
    }
    cursor_.Advance();
    return absl::OkStatus();
  }

  // The body of a macro or call block: loops around it do not count, and it has its own special
  // names.
  Result ParseCallable(StatementPointer statement, std::string_view end, std::string_view opener) {
    const int outer_loops = std::exchange(open_loops_, 0);
    const ExpressionParser::SpecialNames outer =
        std::exchange(expressions_.special_names(), ExpressionParser::SpecialNames{});
    RETURN_IF_ERROR(ParseBodyAndEnd(statement->body, end, opener, statement->offset));
    const ExpressionParser::SpecialNames inner = expressions_.special_names();
    statement->uses_caller = inner.caller;
    statement->uses_varargs = inner.varargs;
    statement->uses_kwargs = inner.kwargs;
    expressions_.special_names() = outer;
    open_loops_ = outer_loops;
    return statement;
  }

  Result ParseMacro(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kMacro, offset));
    ASSIGN_OR_RETURN(Target target, ParseTargetName(/*allow_namespace=*/false));
    statement->symbol = target.symbol;
    statement->name = target.name;
    RETURN_IF_ERROR(ParseParameters(statement->parameters));
    return ParseCallable(std::move(statement), "endmacro", "macro");
  }

  Result ParseCallBlock(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kCallBlock, offset));
    if (cursor_.AtOperator("(")) {
      RETURN_IF_ERROR(ParseParameters(statement->parameters));
    }
    const uint32_t call_offset = cursor_.current().offset;
    ASSIGN_OR_RETURN(ExpressionPointer call, expressions_.Parse(/*allow_tuple=*/false));
    if (call->kind != ExpressionKind::kCall) {
      return cursor_.ErrorAt(call_offset, "expected the call of a macro");
    }
    statement->expressions.push_back(std::move(call));
    statement->name = TrustedString("caller");
    return ParseCallable(std::move(statement), "endcall", "call");
  }

  Result ParseFilterBlock(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kFilterBlock, offset));
    ASSIGN_OR_RETURN(statement->filter, expressions_.ParseFilterChain());
    return WithEnd(std::move(statement), &Statement::body, "endfilter", "filter");
  }

  Result ParseWith(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kWith, offset));
    while (cursor_.current().kind != TokenKind::kBlockEnd) {
      if (!statement->targets.empty()) {
        RETURN_IF_ERROR(cursor_.ExpectOperator(","));
      }
      ASSIGN_OR_RETURN(Target target, ParseTargetName(/*allow_namespace=*/false));
      RETURN_IF_ERROR(cursor_.ExpectOperator("="));
      ASSIGN_OR_RETURN(ExpressionPointer value, expressions_.Parse(/*allow_tuple=*/false));
      statement->targets.push_back(std::move(target));
      statement->expressions.push_back(std::move(value));
    }
    return WithEnd(std::move(statement), &Statement::body, "endwith", "with");
  }

  Result ParseBlock(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kScope, offset));
    ASSIGN_OR_RETURN(Target name, ParseTargetName(/*allow_namespace=*/false));
    while (cursor_.TakeName("scoped") || cursor_.TakeName("required")) {
    }
    RETURN_IF_ERROR(ParseBodyAndEnd(statement->body, "endblock", "block", offset));
    cursor_.TakeName(name.name.bytes());
    return statement;
  }

  Result ParseGeneration(uint32_t offset) {
    // The tag's body is a function of its own in the reference, so a loop around it cannot be left
    // from within.
    const int outer_loops = std::exchange(open_loops_, 0);
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kScope, offset));
    RETURN_IF_ERROR(ParseBodyAndEnd(statement->body, "endgeneration", "generation", offset));
    open_loops_ = outer_loops;
    return statement;
  }

  Result ParseAutoescape(uint32_t offset) {
    if (!cursor_.TakeName("false") && !cursor_.TakeName("False")) {
      return cursor_.ErrorAt(offset, "autoescape is not supported but as 'autoescape false'");
    }
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kScope, offset));
    return WithEnd(std::move(statement), &Statement::body, "endautoescape", "autoescape");
  }

  Result ParsePrintTag(uint32_t offset) {
    ASSIGN_OR_RETURN(StatementPointer statement, Make(StatementKind::kPrint, offset));
    while (cursor_.current().kind != TokenKind::kBlockEnd) {
      if (!statement->expressions.empty()) {
        RETURN_IF_ERROR(cursor_.ExpectOperator(","));
      }
      ASSIGN_OR_RETURN(ExpressionPointer value, expressions_.Parse(/*allow_tuple=*/false));
      statement->expressions.push_back(std::move(value));
    }
    return statement;
  }

  Result ParseLoopControl(uint32_t offset) {
    const bool is_break = cursor_.AtName("break");
    cursor_.Advance();
    if (open_loops_ == 0) {
      return cursor_.ErrorAt(
          offset, is_break ? "'break' outside of a loop" : "'continue' outside of a loop");
    }
    return Make(is_break ? StatementKind::kBreak : StatementKind::kContinue, offset);
  }

  SyntaxTree& tree_;
  TokenCursor cursor_;
  ExpressionParser expressions_;
  int open_loops_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const SyntaxTree>> ParseTemplate(std::string_view template_text) {
  if (template_text.size() > kTemplateBytesMax) {
    return absl::ResourceExhaustedError(Joined("the chat template has ", template_text.size(),
                                               " bytes; the limit is ", kTemplateBytesMax));
  }
  if (!IsValidUtf8(template_text)) {
    return absl::InvalidArgumentError("the chat template is not valid UTF-8");
  }
  auto tree = std::make_unique<SyntaxTree>();
  tree->source = NormalizeSource(template_text);
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(tree->source));
  RETURN_IF_ERROR(StatementParser(tokens, *tree).Run());
  return tree;
}

}  // namespace trireme::text::jinja

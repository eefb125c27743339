#include "runtime/text/jinja_lexer.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool IsWordStart(char32_t c) { return c == '_' || IsAlphabetic(c); }
bool IsWordPart(char32_t c) { return IsWordStart(c) || IsNumeric(c); }

// The next tag of the text: where it begins, what it is, and the sign after its two characters.
struct TagStart {
  size_t begin;
  char kind;  // '%', '{' or '#'
  char sign;  // '-', '+' or 0
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (position_ < source_.size()) {
      TagStart tag;
      if (!FindTag(tag)) {
        AddText(position_, source_.size());
        break;
      }
      const size_t text_begin = position_;
      const size_t text_end = TextEnd(text_begin, tag);
      position_ = tag.begin + 2 + (tag.sign != 0 ? 1 : 0);
      AddText(text_begin, text_end);
      RETURN_IF_ERROR(CheckCount());
      RETURN_IF_ERROR(Tag(tag));
    }
    Add(TokenKind::kEnd, source_.size(), "");
    return std::move(tokens_);
  }

 private:
  void Add(TokenKind kind, size_t offset, std::string value) {
    tokens_.push_back({kind, static_cast<uint32_t>(offset), std::move(value)});
  }

  absl::Status CheckCount() const {
    return tokens_.size() <= kTokensMax
               ? absl::OkStatus()
               : absl::ResourceExhaustedError(
                     Joined("chat template, ", PlaceOf(source_, static_cast<uint32_t>(position_)),
                            ": more tokens than the limit of ", kTokensMax));
  }

  void AddText(size_t begin, size_t end) {
    if (begin < end) {
      Add(TokenKind::kText, begin, std::string(source_.substr(begin, end - begin)));
    }
  }

  absl::Status Error(size_t offset, std::string_view message) const {
    return SyntaxError(source_, static_cast<uint32_t>(offset), message);
  }

  bool At(std::string_view wanted) const {
    return source_.substr(position_, wanted.size()) == wanted;
  }

  bool FindTag(TagStart& tag) const {
    for (size_t begin = source_.find('{', position_); begin != std::string_view::npos;
         begin = source_.find('{', begin + 1)) {
      if (begin + 1 < source_.size()) {
        const char kind = source_[begin + 1];
        if (kind == '%' || kind == '{' || kind == '#') {
          const char sign = begin + 2 < source_.size() ? source_[begin + 2] : 0;
          tag = {begin, kind, sign == '-' || sign == '+' ? sign : char{0}};
          return true;
        }
      }
    }
    return false;
  }

  // The end of the text in front of the tag, after white space control.
  size_t TextEnd(size_t text_begin, const TagStart& tag) const {
    const std::string_view text = source_.substr(text_begin, tag.begin - text_begin);
    if (tag.sign == '-') {
      return text_begin + StripSpace(text, /*left=*/false, /*right=*/true).end;
    }
    if (tag.sign == '+' || tag.kind == '{') {
      return tag.begin;
    }
    const size_t line_end = text.rfind('\n');
    const size_t line_begin = line_end == std::string_view::npos ? 0 : line_end + 1;
    if (line_begin == 0 && !at_line_start_) {
      return tag.begin;
    }
    const StripRange rest = StripSpace(text.substr(line_begin), /*left=*/true, /*right=*/false);
    return rest.begin == rest.end ? text_begin + line_begin : tag.begin;
  }

  void SkipSpace() {
    position_ += StripSpace(source_.substr(position_), /*left=*/true, /*right=*/false).begin;
  }

  // After the two characters that end a block or comment; `sign` stood before them.
  void AfterBlock(char sign) {
    if (sign == '-') {
      SkipSpace();
    } else if (sign != '+' && At("\n")) {
      ++position_;
    }
    NoteLineStart();
  }

  void NoteLineStart() { at_line_start_ = source_[position_ - 1] == '\n'; }

  absl::Status Tag(const TagStart& tag) {
    if (tag.kind == '#') {
      return Comment(tag);
    }
    if (tag.kind == '%') {
      const size_t begin = position_;
      SkipSpace();
      if (At("raw")) {
        position_ += 3;
        SkipSpace();
        if (At("%}") || At("-%}")) {
          return Raw(tag);
        }
      }
      position_ = begin;
    }
    at_line_start_ = false;
    Add(tag.kind == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, tag.begin, "");
    return Code(tag);
  }

  absl::Status Comment(const TagStart& tag) {
    const size_t end = source_.find("#}", position_);
    if (end == std::string_view::npos) {
      return Error(tag.begin, "this comment has no end: missing '#}'");
    }
    const char sign = end > position_ ? source_[end - 1] : char{0};
    position_ = end + 2;
    AfterBlock(sign);
    return absl::OkStatus();
  }

  absl::Status Raw(const TagStart& tag) {
    const bool strips = At("-%}");
    position_ += strips ? 3 : 2;
    if (strips) {
      SkipSpace();
    }
    NoteLineStart();
    const size_t text_begin = position_;
    for (size_t begin = source_.find("{%", position_); begin != std::string_view::npos;
         begin = source_.find("{%", begin + 1)) {
      position_ = begin + 2;
      const char begin_sign = At("-") || At("+") ? source_[position_++] : char{0};
      SkipSpace();
      if (!At("endraw")) {
        continue;
      }
      position_ += 6;
      SkipSpace();
      const char end_sign = At("-") || At("+") ? source_[position_++] : char{0};
      if (At("%}")) {
        position_ = text_begin;
        AddText(text_begin, TextEnd(text_begin, {begin, '%', begin_sign}));
        position_ = source_.find("%}", begin) + 2;
        AfterBlock(end_sign);
        return absl::OkStatus();
      }
    }
    return Error(tag.begin, "this raw block has no end: missing '{% endraw %}'");
  }

  // Tokens up to the end of the tag.
  absl::Status Code(const TagStart& tag) {
    const std::string_view end = tag.kind == '%' ? "%}" : "}}";
    brackets_.clear();
    while (true) {
      SkipSpace();
      if (position_ >= source_.size()) {
        return Error(tag.begin, Joined("this tag has no end: missing '", end, "'"));
      }
      if (brackets_.empty() && AtTagEnd(end)) {
        const char sign = At(end) ? char{0} : source_[position_++];
        Add(tag.kind == '%' ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, position_, "");
        position_ += 2;
        if (tag.kind == '%') {
          AfterBlock(sign);
        } else {
          if (sign == '-') {
            SkipSpace();
          }
          NoteLineStart();
        }
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(CheckCount());
      RETURN_IF_ERROR(CodeToken());
    }
  }

  bool AtTagEnd(std::string_view end) const {
    if (At(end)) {
      return true;
    }
    const bool has_sign = At("-") || (At("+") && end == "%}");
    return has_sign && source_.substr(position_ + 1, 2) == end;
  }

  absl::Status CodeToken() {
    const char c = source_[position_];
    if (IsDigit(c)) {
      Number();
      return absl::OkStatus();
    }
    if (c == '\'' || c == '"') {
      return StringLiteral(c);
    }
    if (IsWordStart(DecodeAt(source_, position_).code_point)) {
      const size_t begin = position_;
      while (position_ < source_.size()) {
        const DecodedCharacter character = DecodeAt(source_, position_);
        if (!IsWordPart(character.code_point)) {
          break;
        }
        position_ += character.bytes;
      }
      Add(TokenKind::kName, begin, std::string(source_.substr(begin, position_ - begin)));
      return absl::OkStatus();
    }
    return OperatorToken();
  }

  // Digits with single underscores between them, from `begin`; returns their end (`begin` when
  // there is none).
  template <typename Accepts>
  size_t DigitsEnd(size_t begin, Accepts accepts) const {
    size_t end = begin;
    while (end < source_.size()) {
      const size_t digit = source_[end] == '_' && end > begin ? end + 1 : end;
      if (digit >= source_.size() || !accepts(source_[digit])) {
        break;
      }
      end = digit + 1;
    }
    return end;
  }

  void AddNumber(TokenKind kind, size_t begin, size_t end) {
    std::string value(source_.substr(begin, end - begin));
    value.erase(std::remove(value.begin(), value.end(), '_'), value.end());
    Add(kind, begin, std::move(value));
    position_ = end;
  }

  // The end of a fraction and exponent after `digits_end`, or `digits_end` when this is no float.
  size_t FloatEnd(size_t digits_end) const {
    size_t end = digits_end;
    if (end + 1 < source_.size() && source_[end] == '.' && IsDigit(source_[end + 1])) {
      end = DigitsEnd(end + 1, IsDigit);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) {
        ++exponent;
      }
      const size_t exponent_end = DigitsEnd(exponent, IsDigit);
      if (exponent_end > exponent) {
        end = exponent_end;
      }
    }
    return end;
  }

  void Number() {
    const size_t begin = position_;
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';
    const size_t digits_end = DigitsEnd(begin, IsDigit);
    const size_t float_end = after_dot ? digits_end : FloatEnd(digits_end);
    if (float_end > digits_end) {
      AddNumber(TokenKind::kFloat, begin, float_end);
      return;
    }
    if (source_[begin] != '0') {
      AddNumber(TokenKind::kInteger, begin, digits_end);
      return;
    }
    const char base =
        begin + 1 < source_.size() ? static_cast<char>(source_[begin + 1] | 0x20) : '0';
    size_t end = begin + 2;
    if (base == 'x') {
      end = DigitsEnd(begin + 2, IsHexDigit);
    } else if (base == 'o') {
      end = DigitsEnd(begin + 2, [](char c) { return c >= '0' && c <= '7'; });
    } else if (base == 'b') {
      end = DigitsEnd(begin + 2, [](char c) { return c == '0' || c == '1'; });
    }
    const bool has_base = end > begin + 2;
    // A decimal number does not begin with 0 but for zero itself: "08" is 0 and then 8.
    AddNumber(TokenKind::kInteger, begin,
              has_base ? end : DigitsEnd(begin, [](char c) { return c == '0'; }));
  }

  absl::Status StringLiteral(char quote) {
    const size_t begin = position_++;
    std::string value;
    while (position_ < source_.size() && source_[position_] != quote) {
      if (source_[position_] != '\\') {
        value.push_back(source_[position_++]);
        continue;
      }
      RETURN_IF_ERROR(Escape(value));
    }
    if (position_ >= source_.size()) {
      return Error(begin, Joined("this string has no end: missing ", std::string(1, quote)));
    }
    ++position_;
    Add(TokenKind::kString, begin, std::move(value));
    return absl::OkStatus();
  }

  absl::Status HexEscape(size_t digits, std::string& value) {
    const std::string_view hex = source_.substr(position_ + 2, digits);
    if (hex.size() != digits || !std::all_of(hex.begin(), hex.end(), IsHexDigit)) {
      return Error(position_, Joined("this escape needs ", digits, " hexadecimal digits"));
    }
    const unsigned long code_point = std::stoul(std::string(hex), nullptr, 16);
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) {
      return Error(position_, "this escape names no Unicode character");
    }
    AppendUtf8(static_cast<char32_t>(code_point), value);
    position_ += 2 + digits;
    return absl::OkStatus();
  }

  absl::Status Escape(std::string& value) {
    if (position_ + 1 >= source_.size()) {
      ++position_;
      return absl::OkStatus();
    }
    const char c = source_[position_ + 1];
    switch (c) {
      case 'x':
        return HexEscape(2, value);
      case 'u':
        return HexEscape(4, value);
      case 'U':
        return HexEscape(8, value);
      case 'N':
        return Error(position_, "characters cannot be given by name; use \\u and its number");
      default:
        break;
    }
    if (c >= '0' && c <= '7') {
      char32_t code_point = 0;
      size_t end = position_ + 1;
      while (end < source_.size() && end < position_ + 4 && source_[end] >= '0' &&
             source_[end] <= '7') {
        code_point = code_point * 8 + static_cast<char32_t>(source_[end++] - '0');
      }
      AppendUtf8(code_point, value);
      position_ = end;
      return absl::OkStatus();
    }
    position_ += 2;
    constexpr std::string_view kNames = "abfnrtv\\'\"";
    constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    const size_t known = kNames.find(c);
    if (known != std::string_view::npos) {
      value.push_back(kValues[known]);
    } else if (c != '\n') {  // an escaped line end joins the lines; any other pair stays as it is
      value.push_back('\\');
      value.push_back(c);
    }
    return absl::OkStatus();
  }

  absl::Status OperatorToken() {
    constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                               "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                               ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view candidate : kOperators) {
      if (!At(candidate)) {
        continue;
      }
      const char c = candidate[0];
      if (c == '(' || c == '[' || c == '{') {
        brackets_.push_back(c == '(' ? ')' : static_cast<char>(c + 2));
      } else if (c == ')' || c == ']' || c == '}') {
        if (brackets_.empty()) {
          return Error(position_, Joined("'", candidate, "' without its opening bracket"));
        }
        if (brackets_.back() != c) {
          return Error(position_, Joined("found '", candidate, "' where '",
                                         std::string(1, brackets_.back()), "' is needed"));
        }
        brackets_.pop_back();
      }
      Add(TokenKind::kOperator, position_, std::string(candidate));
      position_ += candidate.size();
      return absl::OkStatus();
    }
    const size_t length = DecodeAt(source_, position_).bytes;
    return Error(position_,
                 Joined("unexpected character '", source_.substr(position_, length), "' in a tag"));
  }

  const std::string_view source_;
  size_t position_ = 0;
  // Whether the text that follows begins a line, which decides about its leading white space.
  bool at_line_start_ = true;
  std::string brackets_;
  std::vector<Token> tokens_;
};

}  // namespace

std::string NormalizeSource(std::string_view template_text) {
  std::string source;
  source.reserve(template_text.size());
  for (size_t i = 0; i < template_text.size(); ++i) {
    if (template_text[i] != '\r') {
      source.push_back(template_text[i]);
      continue;
    }
    source.push_back('\n');
    if (i + 1 < template_text.size() && template_text[i + 1] == '\n') {
      ++i;
    }
  }
  if (!source.empty() && source.back() == '\n') {
    source.pop_back();
  }
  return source;
}

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source) { return Lexer(source).Run(); }

std::string PlaceOf(std::string_view source, uint32_t offset) {
  const std::string_view before = source.substr(0, offset);
  const size_t line_end = before.rfind('\n');
  const size_t line_begin = line_end == std::string_view::npos ? 0 : line_end + 1;
  return Joined("line ", std::count(before.begin(), before.end(), '\n') + 1, ", column ",
                CountCharacters(before.substr(line_begin)) + 1);
}

absl::Status SyntaxError(std::string_view source, uint32_t offset, std::string_view message) {
  return absl::InvalidArgumentError(
      Joined("chat template, ", PlaceOf(source, offset), ": ", message));
}

}  // namespace trireme::text::jinja

#include "runtime/text/jinja_functions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/jinja_filters.h"
#include "runtime/text/jinja_print.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_unicode.h"

namespace trireme::text::jinja {
namespace {

using Result = absl::StatusOr<Value>;

constexpr char kRaisedPayload[] = "trireme/raised-by-template";

Result RangeFunction(Runtime& runtime, const Arguments& arguments) {
  const size_t count = arguments.positional.size();
  if (count < 1 || count > 3 || !arguments.keywords.empty()) {
    return TemplateError("range() takes a stop, or a start, a stop and perhaps a step");
  }
  Integer numbers[3];
  for (size_t i = 0; i < count; ++i) {
    const Value& argument = arguments.positional[i];
    if (!argument.IsNumber() || argument.Is(Kind::kFloat)) {
      return TemplateError("range() needs integers, not ", TypeName(argument));
    }
    numbers[i] = argument.AsInteger();
  }
  const Integer start = count == 1 ? Integer{0} : numbers[0];
  const Integer stop = count == 1 ? numbers[0] : numbers[1];
  const Integer step = count == 3 ? numbers[2] : Integer{1};
  if (step == 0) {
    return TemplateError("range(): the step must not be zero");
  }
  constexpr Integer kBound = Integer{1} << 62;
  const bool is_sane = start > -kBound && start < kBound && stop > -kBound && stop < kBound &&
                       step > -kBound && step < kBound;
  if (is_sane) {
    RETURN_IF_ERROR(runtime.SpendBytes(sizeof(Range)));
    Range* range = runtime.New<Range>(start, stop, step);
    if (range->size() <= kRangeItemsMax) {
      return Value::Of(range);
    }
  }
  return absl::ResourceExhaustedError(
      Joined("range() of more than the limit of ", kRangeItemsMax, " items"));
}

// What dict() and namespace() put together: a mapping or pairs, then the named values.
absl::Status Collect(Runtime& runtime, const Arguments& arguments, std::string_view name,
                     Map& target) {
  if (arguments.positional.size() > 1) {
    return TemplateError(name, "() takes at most one value without a name");
  }
  for (const Value& source : arguments.positional) {
    if (const Map* map = source.AsMap(); map != nullptr) {
      for (const auto& [key, value] : map->entries) {
        RETURN_IF_ERROR(runtime.Spend(4));
        target.Set(key, value);
      }
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<Value> pairs, runtime.Iterate(source));
    for (const Value& pair : pairs) {
      ASSIGN_OR_RETURN(const std::vector<Value> parts, runtime.Iterate(pair));
      if (parts.size() != 2 || !IsHashable(parts[0])) {
        return TemplateError(name, "() needs a mapping, or pairs of a key and a value");
      }
      RETURN_IF_ERROR(runtime.Spend(4));
      target.Set(parts[0], parts[1]);
    }
  }
  for (const auto& [key, value] : arguments.keywords) {
    RETURN_IF_ERROR(runtime.Spend(4));
    target.Set(key, value);
  }
  return absl::OkStatus();
}

Result DictFunction(Runtime& runtime, const Arguments& arguments) {
  ASSIGN_OR_RETURN(Map * map, runtime.NewMap());
  RETURN_IF_ERROR(Collect(runtime, arguments, "dict", *map));
  return Value::Of(map);
}

Result NamespaceFunction(Runtime& runtime, const Arguments& arguments) {
  RETURN_IF_ERROR(runtime.SpendBytes(sizeof(Namespace)));
  Namespace* space = runtime.New<Namespace>();
  RETURN_IF_ERROR(Collect(runtime, arguments, "namespace", space->attributes));
  for (const auto& [key, value] : space->attributes.entries) {
    if (key.IsString()) {
      RETURN_IF_ERROR(CheckNamespaceName(key.bytes()));
    }
  }
  return Value::Of(space);
}

Result CyclerFunction(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    return TemplateError("cycler() needs at least one item");
  }
  RETURN_IF_ERROR(
      runtime.SpendProduct(static_cast<Integer>(arguments.positional.size()), sizeof(Value)));
  return Value::Of(runtime.New<Cycler>(arguments.positional));
}

Result JoinerFunction(Runtime& runtime, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("joiner", arguments, {"sep"}));
  RETURN_IF_ERROR(runtime.SpendBytes(sizeof(Joiner)));
  Value separator;
  if (bound[0] != nullptr) {
    separator = *bound[0];
  } else {
    ASSIGN_OR_RETURN(separator, runtime.String(", ", Origin::kTrusted));
  }
  return Value::Of(runtime.New<Joiner>(std::move(separator)));
}

Result LipsumFunction(Runtime&, const Arguments&) {
  return TemplateError("lipsum() is not supported: a prompt must not be random");
}

Result RaiseFunction(Runtime& runtime, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("raise_exception", arguments, {"message"}));
  TracedText message;
  if (bound[0] != nullptr) {
    ASSIGN_OR_RETURN(message, ToText(runtime, *bound[0]));
  }
  // Longer than any message for people; the rest would only fill logs.
  constexpr int64_t kMessageCharacters = 4096;
  const std::string_view shown =
      message.bytes().substr(0, OffsetOfCharacter(message.bytes(), kMessageCharacters));
  absl::Status status = TemplateError("the template refuses this conversation: ", shown);
  status.SetPayload(kRaisedPayload, absl::Cord(ToAbseil(shown)));
  return status;
}

Result TimeFunction(Runtime& runtime, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BindArguments("strftime_now", arguments, {"format"}));
  if (bound[0] == nullptr || !bound[0]->IsString()) {
    return TemplateError("strftime_now() needs a format string");
  }
  RETURN_IF_ERROR(runtime.SpendProduct(static_cast<Integer>(bound[0]->text().size()), 32));
  return runtime.String(FormatTime(bound[0]->bytes(), runtime.now()),
                        bound[0]->text().WeakestOrigin());
}

constexpr FunctionEntry kFunctions[] = {
    {"cycler", CyclerFunction},       {"dict", DictFunction},
    {"joiner", JoinerFunction},       {"lipsum", LipsumFunction},
    {"namespace", NamespaceFunction}, {"raise_exception", RaiseFunction},
    {"range", RangeFunction},         {"strftime_now", TimeFunction},
};

// glibc's "%-d" leaves padding out.
std::string WithoutPadding(std::string text) {
  const size_t first = text.find_first_not_of("0 ");
  if (first == std::string::npos) {
    return text.empty() ? text : text.substr(text.size() - 1);
  }
  return text.substr(first);
}

}  // namespace

absl::Span<const FunctionEntry> GlobalFunctions() { return kFunctions; }

std::optional<std::string> RaisedMessage(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRaisedPayload);
  if (!payload.has_value()) {
    return std::nullopt;
  }
  return std::string(*payload);
}

std::string FormatTime(std::string_view format, absl::CivilSecond time) {
  constexpr std::string_view kConversions = "aAbBcCdDeFgGhHIjmMnprRSStTuUVwWxXyY";
  const absl::Time instant = absl::FromCivil(time, absl::UTCTimeZone());
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    const bool is_bare = format[i + 1] == '-' && i + 2 < format.size();
    const char letter = format[i + (is_bare ? 2 : 1)];
    const size_t length = is_bare ? 3 : 2;
    if (letter == '%') {
      out.push_back('%');
    } else if (letter == 'f') {
      out.append("000000");
    } else if (letter == 'z' || letter == 'Z') {
      // A time without a zone has no name for it.
    } else if (letter == 'k' || letter == 'l') {
      const std::string hour =
          absl::FormatTime(letter == 'k' ? "%H" : "%I", instant, absl::UTCTimeZone());
      out.append(is_bare || hour[0] != '0' ? WithoutPadding(hour) : " " + hour.substr(1));
    } else if (kConversions.find(letter) != std::string_view::npos) {
      const std::string text =
          absl::FormatTime(std::string{'%', letter}, instant, absl::UTCTimeZone());
      out.append(is_bare ? WithoutPadding(text) : text);
    } else {
      out.append(format.substr(i, length));
    }
    i += length - 1;
  }
  return out;
}

absl::Status CheckNamespaceName(std::string_view name) {
  if (!name.empty() && name[0] == '_') {
    return TemplateError("a namespace cannot have an attribute '", name,
                         "': names with an underscore in front are reserved; rename it");
  }
  return absl::OkStatus();
}

}  // namespace trireme::text::jinja

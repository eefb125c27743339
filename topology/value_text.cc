#include "topology/value_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "topology/nearest_word.h"
#include "topology/partition.h"

namespace trireme::topology {
namespace {

constexpr size_t kShownMax = 80;      // bytes of a wrong value that an error repeats
constexpr size_t kNameMax = 63;       // of a DNS label
constexpr size_t kTextMax = 4096;     // PATH_MAX
constexpr int kCoresMax = 1024;       // of one list
constexpr int64_t kIndexMax = 65535;  // of a core or a layer

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", text.substr(0, kShownMax), text.size() > kShownMax ? "..." : "", "\"");
}

absl::Status Wrong(absl::string_view text, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is ", wanted));
}

// Digits, no sign, no leading zero; false also when it is too large for int64_t.
bool ReadDigits(absl::string_view text, int64_t* value) {
  const bool all_digits =
      !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  const bool is_octal_like = text.size() > 1 && text[0] == '0';
  return all_digits && !is_octal_like && absl::SimpleAtoi(text, value);
}

// Digits with at most one point between them: no sign, exponent, infinity or hexadecimal.
bool ReadDecimal(absl::string_view text, double* value) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  int64_t whole = 0;
  const bool is_fraction_good =
      parts.size() == 1 || (parts.size() == 2 && !parts[1].empty() &&
                            std::all_of(parts[1].begin(), parts[1].end(), absl::ascii_isdigit));
  return is_fraction_good && ReadDigits(parts[0], &whole) && absl::SimpleAtod(text, value) &&
         std::isfinite(*value);
}

struct Unit {
  const char* name;
  double factor;
};

// A number and its unit, times the unit's factor. `example` are the units to offer when there is
// none.
absl::StatusOr<double> ReadMeasure(absl::string_view text, const std::vector<Unit>& units,
                                   std::vector<std::string> example) {
  const size_t split = std::min(text.find_first_not_of("0123456789."), text.size());
  const absl::string_view number = text.substr(0, split);
  const absl::string_view unit_name = absl::StripLeadingAsciiWhitespace(text.substr(split));
  std::vector<std::string> names;
  for (const Unit& unit : units) {
    names.push_back(unit.name);
  }
  double value = 0;
  if (!ReadDecimal(number, &value)) {
    return Wrong(text,
                 absl::StrCat("no number with a unit; the units are ", absl::StrJoin(names, ", ")));
  }
  if (unit_name.empty()) {
    for (std::string& unit : example) {
      unit = absl::StrCat(number, unit);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), " has no unit; write ", absl::StrJoin(example, " or ")));
  }
  for (const Unit& unit : units) {
    if (unit_name == unit.name) {
      return value * unit.factor;
    }
  }
  const std::string nearest = NearestWord(unit_name, names);
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), ": unknown unit ", Quoted(unit_name), "; ",
                   nearest.empty() ? absl::StrCat("the units are ", absl::StrJoin(names, ", "))
                                   : absl::StrCat("did you mean ", number, nearest, "?")));
}

constexpr double kKibi = 1024;

}  // namespace

absl::StatusOr<int64_t> ParseCount(absl::string_view text, CountLimits limits) {
  int64_t value = 0;
  if (!ReadDigits(text, &value) || value < limits.minimum || value > limits.maximum) {
    return Wrong(text,
                 absl::StrFormat("no whole number from %d to %d", limits.minimum, limits.maximum));
  }
  return value;
}

absl::StatusOr<double> ParseNumber(absl::string_view text, NumberLimits limits) {
  double value = 0;
  if (!ReadDecimal(text, &value) || value < limits.minimum || value > limits.maximum) {
    return Wrong(text, absl::StrFormat("no number from %g to %g", limits.minimum, limits.maximum));
  }
  return value;
}

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  const absl::StatusOr<double> bytes = ReadMeasure(text,
                                                   {{"KiB", kKibi},
                                                    {"MiB", kKibi * kKibi},
                                                    {"GiB", kKibi * kKibi * kKibi},
                                                    {"TiB", kKibi * kKibi * kKibi * kKibi}},
                                                   {"MiB", "GiB"});
  if (!bytes.ok()) {
    return bytes.status();
  }
  if (*bytes < 1 || *bytes > 1e18) {
    return Wrong(text, "no size above 0 and below 1 EB");
  }
  return static_cast<int64_t>(*bytes);
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  const absl::StatusOr<double> seconds = ReadMeasure(
      text, {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}, {"s", "min"});
  if (!seconds.ok()) {
    return seconds.status();
  }
  if (absl::Seconds(*seconds) > absl::Hours(7 * 24)) {
    return Wrong(text, "longer than a week");
  }
  return absl::Seconds(*seconds);
}

absl::StatusOr<double> ParseByteRate(absl::string_view text) {
  const absl::StatusOr<double> rate = ReadMeasure(
      text,
      {{"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}},
      {"GB/s", "Gbit/s"});
  if (rate.ok() && *rate <= 0) {
    return Wrong(text, "no rate above 0");
  }
  return rate;
}

absl::StatusOr<double> ParseOperationRate(absl::string_view text) {
  const absl::StatusOr<double> rate =
      ReadMeasure(text, {{"Gop/s", 1e9}, {"Top/s", 1e12}}, {"Gop/s", "Top/s"});
  if (rate.ok() && *rate <= 0) {
    return Wrong(text, "no rate above 0");
  }
  return rate;
}

absl::StatusOr<std::vector<int>> ParseCores(absl::string_view text) {
  constexpr absl::string_view kWanted = "no list of cores such as 0-3 or 0,2,4";
  std::vector<int> cores;
  std::set<int> seen;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int64_t first = 0;
    int64_t last = 0;
    if (ends.size() > 2 || !ReadDigits(ends.front(), &first) || !ReadDigits(ends.back(), &last) ||
        last > kIndexMax || first > last) {
      return Wrong(text, kWanted);
    }
    for (int64_t core = first; core <= last; ++core) {
      if (!seen.insert(static_cast<int>(core)).second) {
        return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " has core ", core, " twice"));
      }
      if (cores.size() == kCoresMax) {
        return Wrong(text, absl::StrCat("more than ", kCoresMax, " cores"));
      }
      cores.push_back(static_cast<int>(core));
    }
  }
  return cores;
}

absl::StatusOr<Range> ParseLayers(absl::string_view text) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '-');
  Range layers;
  int64_t last = 0;
  if (ends.size() > 2 || !ReadDigits(ends.front(), &layers.begin) ||
      !ReadDigits(ends.back(), &last) || last > kIndexMax || layers.begin > last) {
    return Wrong(text, "no run of layers such as 0-14 (both included), nor auto");
  }
  layers.end = last + 1;
  return layers;
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  constexpr absl::string_view kWanted =
      "no address with a port, HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080";
  const size_t colon = text.rfind(':');
  int64_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !ReadDigits(text.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return Wrong(text, kWanted);
  }
  const absl::string_view host = text.substr(0, colon);
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const absl::string_view allowed =
      is_bracketed ? "0123456789abcdefABCDEF:.%[]"
                   : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_";
  if (host.find_first_not_of(allowed) != absl::string_view::npos) {
    return Wrong(text, kWanted);
  }
  return Address{.host = std::string(host), .port = static_cast<int>(port)};
}

absl::StatusOr<std::string> ParseName(absl::string_view text) {
  const bool is_good = !text.empty() && text.size() <= kNameMax && absl::ascii_isalnum(text[0]) &&
                       std::all_of(text.begin(), text.end(), [](unsigned char c) {
                         return absl::ascii_isalnum(c) || c == '-' || c == '_';
                       });
  if (!is_good) {
    return Wrong(text,
                 absl::StrCat("no name: letters, digits, '-' and '_', beginning with a letter "
                              "or digit, at most ",
                              kNameMax));
  }
  return std::string(text);
}

absl::StatusOr<std::string> ParseText(absl::string_view text) {
  if (text.empty()) {
    return absl::InvalidArgumentError("is empty");
  }
  if (text.size() > kTextMax) {
    return Wrong(text, absl::StrCat(text.size(), " bytes long; at most ", kTextMax));
  }
  if (std::any_of(text.begin(), text.end(), absl::ascii_iscntrl)) {
    return absl::InvalidArgumentError("holds a control character");
  }
  return std::string(text);
}

absl::StatusOr<int> ParseChoice(absl::string_view text, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (text == words[i]) {
      return static_cast<int>(i);
    }
  }
  const std::string nearest = NearestWord(text, words);
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not one of ", absl::StrJoin(words, ", "),
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

}  // namespace trireme::topology

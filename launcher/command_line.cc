#include "launcher/command_line.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launcher/version.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/mpi_communicator.h"
#include "topology/nearest_word.h"

namespace trireme::launcher {
namespace {

std::string Underscored(absl::string_view name) { return absl::StrReplaceAll(name, {{"-", "_"}}); }
std::string Hyphenated(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }

// "tensor" and "tensor_name" of "tensor=tensor_name"; the same twice of "json".
struct FlagName {
  absl::string_view spelling;
  absl::string_view declared;
};

FlagName NameOf(absl::string_view entry) {
  const size_t equals = entry.find('=');
  return {entry.substr(0, equals),
          equals == absl::string_view::npos ? entry : entry.substr(equals + 1)};
}

// The flag that a subcommand takes under this spelling, or null.
absl::CommandLineFlag* FindFlag(const Subcommand& subcommand, absl::string_view spelling) {
  for (const char* entry : subcommand.flags) {
    if (NameOf(entry).spelling == spelling) {
      return absl::FindCommandLineFlag(NameOf(entry).declared);
    }
  }
  return nullptr;
}

absl::Status UnknownFlag(const Subcommand& subcommand, absl::string_view argument,
                         absl::string_view name) {
  std::vector<std::string> known;
  for (const char* entry : subcommand.flags) {
    known.emplace_back(NameOf(entry).spelling);
  }
  const std::string nearest = topology::NearestWord(name, known);
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: \"trireme %s\" has no such flag%s; see trireme %s --help", argument, subcommand.name,
      nearest.empty() ? "" : absl::StrCat(" (did you mean --", Hyphenated(nearest), "?)"),
      subcommand.name));
}

// Walks over the arguments of one subcommand.
class ArgumentReader {
 public:
  ArgumentReader(const Subcommand& subcommand, absl::Span<const std::string> arguments)
      : subcommand_(subcommand), arguments_(arguments) {}

  absl::StatusOr<std::vector<std::string>> Read() {
    for (; index_ < arguments_.size(); ++index_) {
      const std::string& argument = arguments_[index_];
      if (flags_ended_ || argument.size() < 2 || argument[0] != '-') {
        words_.push_back(argument);
      } else if (argument == "--") {
        flags_ended_ = true;
      } else if (absl::StartsWith(argument, "--")) {
        RETURN_IF_ERROR(ReadFlag(argument));
      } else {
        return absl::InvalidArgumentError(absl::StrFormat(
            "%s: flags begin with two hyphens; see trireme %s --help", argument, subcommand_.name));
      }
    }
    if (static_cast<int>(words_.size()) > subcommand_.words_max) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "\"%s\": \"trireme %s\" takes %d words that are no flags, found %d",
          words_[subcommand_.words_max], subcommand_.name, subcommand_.words_max, words_.size()));
    }
    return std::move(words_);
  }

 private:
  absl::Status ReadFlag(const std::string& argument) {
    const absl::string_view text = absl::string_view(argument).substr(2);
    const size_t equals = text.find('=');
    const std::string name = Underscored(text.substr(0, equals));
    if (absl::CommandLineFlag* const flag = FindFlag(subcommand_, name)) {
      if (equals != absl::string_view::npos) {
        return Set(flag, argument, text.substr(equals + 1));
      }
      if (flag->IsOfType<bool>()) {
        return Set(flag, argument, "true");
      }
      if (index_ + 1 == arguments_.size()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: a value must follow (%s)", argument, flag->Help()));
      }
      ++index_;
      return Set(flag, argument, arguments_[index_]);
    }
    if (equals == absl::string_view::npos && absl::StartsWith(name, "no")) {
      absl::CommandLineFlag* const flag = FindFlag(subcommand_, name.substr(2));
      if (flag != nullptr && flag->IsOfType<bool>()) {
        return Set(flag, argument, "false");
      }
    }
    return UnknownFlag(subcommand_, argument, name);
  }

  absl::Status Set(absl::CommandLineFlag* flag, const std::string& argument,
                   absl::string_view value) {
    std::string error;
    if (flag->ParseFrom(value, &error)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: \"%s\" is not a value for it (%s)%s%s",
                        absl::string_view(argument).substr(0, argument.find('=')), value,
                        flag->Help(), error.empty() ? "" : ": ", error));
  }

  const Subcommand& subcommand_;
  const absl::Span<const std::string> arguments_;
  size_t index_ = 0;
  bool flags_ended_ = false;
  std::vector<std::string> words_;
};

void PrintUsage(std::FILE* out, absl::Span<const Subcommand> subcommands) {
  absl::FPrintF(out, "Usage: trireme SUBCOMMAND [flags]\n\nSubcommands:\n");
  for (const Subcommand& subcommand : subcommands) {
    absl::FPrintF(out, "  %-11s %s\n", subcommand.name, subcommand.summary);
  }
  absl::FPrintF(out,
                "\n\"trireme SUBCOMMAND --help\" shows flags and an example; \"trireme --version\" "
                "the build.\n");
}

void PrintHelp(const Subcommand& subcommand) {
  absl::PrintF("%s\n\nUsage: trireme %s %s\nExample: %s\n\nFlags:\n", subcommand.summary,
               subcommand.name, subcommand.synopsis, subcommand.example);
  for (const char* entry : subcommand.flags) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(NameOf(entry).declared);
    const std::string fallback = flag->DefaultValue();
    absl::PrintF("  --%-20s %s%s\n", Hyphenated(NameOf(entry).spelling), flag->Help(),
                 fallback.empty() ? "" : absl::StrCat(" (default ", fallback, ")"));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseArguments(const Subcommand& subcommand,
                                                        absl::Span<const std::string> arguments) {
  return ArgumentReader(subcommand, arguments).Read();
}

void PrintError(absl::string_view text) {
  std::string line = absl::StrCat("trireme: ", text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  absl::FPrintF(stderr, "%s\n", line);
}

ExitCode Fail(ExitCode code, const absl::Status& status) {
  // All ranks of a job have the same command line.
  if (code != ExitCode::kUsage || comm::RankBeforeMpi() == 0) {
    PrintError(status.message());
  }
  return code;
}

ExitCode RunCommandLine(absl::Span<const Subcommand> subcommands,
                        absl::Span<const std::string> arguments) {
  if (arguments.empty()) {
    PrintUsage(stderr, subcommands);
    return ExitCode::kUsage;
  }
  if (arguments[0] == "--help" || arguments[0] == "help") {
    PrintUsage(stdout, subcommands);
    return ExitCode::kOk;
  }
  if (arguments[0] == "--version") {
    absl::PrintF("%s\n", VersionText());
    return ExitCode::kOk;
  }
  std::vector<std::string> names;
  for (const Subcommand& subcommand : subcommands) {
    names.push_back(subcommand.name);
    if (arguments[0] != subcommand.name) {
      continue;
    }
    const absl::Span<const std::string> rest = arguments.subspan(1);
    if (std::find(rest.begin(), rest.end(), "--help") != rest.end()) {
      PrintHelp(subcommand);
      return ExitCode::kOk;
    }
    const absl::StatusOr<std::vector<std::string>> words = ParseArguments(subcommand, rest);
    return words.ok() ? subcommand.run(*words) : Fail(ExitCode::kUsage, words.status());
  }
  const std::string nearest = topology::NearestWord(arguments[0], names);
  PrintError(
      absl::StrFormat("\"%s\" is no subcommand%s; see trireme --help", arguments[0],
                      nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)")));
  return ExitCode::kUsage;
}

}  // namespace trireme::launcher

// The command line: subcommands with abseil flags. Flags are declared where their command is; here
// they are found, checked and set, so that every mistake is one clear line and exit code 64.
//
// Terms: a subcommand takes a list of flags and words; "--max-tokens 5", "--max-tokens=5" and
// "--max_tokens=5" are the same,
// "--json" and "--nojson" set a bool, "--" ends the flags.
#ifndef TRIREME_LAUNCHER_COMMAND_LINE_H_
#define TRIREME_LAUNCHER_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/exit_codes.h"

namespace trireme::launcher {

struct Subcommand {
  const char* name;
  const char* summary;   // one line
  const char* synopsis;  // after "trireme NAME "
  const char* example;   // a command that works
  // Names as declared ("max_tokens"), or "spelling=declared" where two subcommands mean different
  // things by one word.
  std::vector<const char*> flags;
  int words_max;  // words that are no flags
  ExitCode (*run)(const std::vector<std::string>& words);
};

// Sets the flags of `arguments` (what follows the subcommand's name) and returns the words.
// InvalidArgument naming the argument, what was wanted, and the nearest known flag for an unknown
// one.
absl::StatusOr<std::vector<std::string>> ParseArguments(const Subcommand& subcommand,
                                                        absl::Span<const std::string> arguments);

// Finds the subcommand, handles --help and --version, runs it. Errors go to stderr as one line.
ExitCode RunCommandLine(absl::Span<const Subcommand> subcommands,
                        absl::Span<const std::string> arguments);

// One line on stderr, "trireme: TEXT".
void PrintError(absl::string_view text);
// Prints the message; one rank of a job does so for all when the command line is at fault.
ExitCode Fail(ExitCode code, const absl::Status& status);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_COMMAND_LINE_H_

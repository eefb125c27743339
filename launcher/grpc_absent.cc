// The subcommands that need gRPC, in a build without it: they say so.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/endpoint.h"

namespace trireme::launcher {
namespace {

ExitCode SayAbsent() {
  return Fail(
      ExitCode::kUsage,
      absl::UnimplementedError("this build has no gRPC; configure with -DTRIREME_WITH_GRPC=ON"));
}

Subcommand Absent(const char* name, const char* summary) {
  return {.name = name,
          .summary = summary,
          .synopsis = "",
          .example = "trireme serve --help",
          .flags = {},
          .words_max = 1000,
          .run = [](const std::vector<std::string>&) { return SayAbsent(); }};
}

}  // namespace

ExitCode GenerateAtEndpoint(const std::string& /*endpoint*/, const PromptChoice& /*choice*/,
                            const schedule::Request& /*options*/, bool /*as_json*/) {
  return SayAbsent();
}

Subcommand BalanceSubcommand() {
  return Absent("balance", "Spread requests over replicas (not in this build)");
}

Subcommand ServeSubcommand() {
  return Absent("serve", "Answer requests over gRPC (not in this build)");
}

Subcommand UpSubcommand() {
  return Absent("up", "Start the fleet of a topology file (not in this build)");
}

Subcommand StatusSubcommand() {
  return Absent("status", "Show what a running fleet's children do (not in this build)");
}

Subcommand DrainSubcommand() {
  return Absent("drain", "Let a replica finish and end (not in this build)");
}

Subcommand TopSubcommand() {
  return Absent("top", "Show a running fleet's load (not in this build)");
}

Subcommand WhySubcommand() {
  return Absent("why", "Tell what became of a request (not in this build)");
}

}  // namespace trireme::launcher

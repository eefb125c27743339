// The program: trireme SUBCOMMAND [flags].

#include <csignal>
#include <string>
#include <vector>

#include "launcher/command_line.h"
#include "launcher/commands.h"

int main(int argc, char** argv) {
  namespace launcher = trireme::launcher;
  std::signal(SIGPIPE,
              SIG_IGN);  // a reader that goes away is an error of a write, not the end of a replica
  const std::vector<launcher::Subcommand> subcommands = {
      launcher::GenerateSubcommand(),   launcher::ChatSubcommand(),
      launcher::ServeSubcommand(),      launcher::BalanceSubcommand(),
      launcher::PlanSubcommand(),       launcher::CheckSubcommand(),
      launcher::UpSubcommand(),         launcher::StatusSubcommand(),
      launcher::TopSubcommand(),        launcher::DrainSubcommand(),
      launcher::InspectSubcommand(),    launcher::TokenizeSubcommand(),
      launcher::DetokenizeSubcommand(), launcher::RenderSubcommand(),
      launcher::ScoreSubcommand(),      launcher::BenchSubcommand(),
      launcher::WhySubcommand(),        launcher::SynthesizeSubcommand(),
  };
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return static_cast<int>(launcher::RunCommandLine(subcommands, arguments));
}

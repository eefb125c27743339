// The subcommands, one file each.
#ifndef TRIREME_LAUNCHER_COMMANDS_H_
#define TRIREME_LAUNCHER_COMMANDS_H_

#include "launcher/command_line.h"

namespace trireme::launcher {

Subcommand BalanceSubcommand();
Subcommand BenchSubcommand();
Subcommand ChatSubcommand();
Subcommand CheckSubcommand();
Subcommand DetokenizeSubcommand();
Subcommand DrainSubcommand();
Subcommand GenerateSubcommand();
Subcommand InspectSubcommand();
Subcommand PlanSubcommand();
Subcommand RenderSubcommand();
Subcommand ScoreSubcommand();
Subcommand ServeSubcommand();
Subcommand StatusSubcommand();
Subcommand SynthesizeSubcommand();
Subcommand TokenizeSubcommand();
Subcommand TopSubcommand();
Subcommand UpSubcommand();
Subcommand WhySubcommand();

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_COMMANDS_H_

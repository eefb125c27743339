#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/generation.h"
#include "launcher/generation_flags.h"
#include "launcher/local_model.h"
#include "launcher/prompts.h"
#include "launcher/replica_options.h"
#include "nlohmann/json.hpp"

ABSL_DECLARE_FLAG(std::string, system);

namespace trireme::launcher {
namespace {

void PrintPiece(size_t /*index*/, absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// One turn: the conversation so far in, the answer streamed and added. False when it could not be
// generated.
bool Answer(engine::Replica& replica, const schedule::Request& options,
            nlohmann::ordered_json* messages) {
  absl::StatusOr<std::vector<int32_t>> prompt = TokenizeMessages(*messages, replica.text());
  if (!prompt.ok()) {
    PrintError(prompt.status().message());
    return false;
  }
  schedule::Request request = options;
  request.prompt = *std::move(prompt);
  const std::vector<Generation> answers =
      Generate(replica.controller(), {std::move(request)}, PrintPiece);
  std::fputs("\n", stdout);
  if (!answers[0].ending.status.ok()) {
    PrintError(answers[0].ending.status.message());
    return false;
  }
  messages->push_back({{"role", "assistant"}, {"content", answers[0].text}});
  return true;
}

ExitCode ChatWith(engine::Replica& replica, const schedule::Request& options) {
  if (const absl::Status& status = replica.text().chat_template_status; !status.ok()) {
    return Fail(absl::IsNotFound(status) ? ExitCode::kUsage : ExitCode::kBadCheckpoint, status);
  }
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (const std::string system = absl::GetFlag(FLAGS_system); !system.empty()) {
    messages.push_back({{"role", "system"}, {"content", system}});
  }
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  if (is_terminal) {
    absl::FPrintF(stderr, "Type a message; an empty line or end of file ends the chat.\n");
  }
  std::string line;
  for (;;) {
    if (is_terminal) {
      std::fputs("> ", stdout);
      std::fflush(stdout);
    }
    if (!std::getline(std::cin, line) || line.empty()) {
      return ExitCode::kOk;
    }
    messages.push_back({{"role", "user"}, {"content", line}});
    if (!Answer(replica, options, &messages)) {
      messages.erase(messages.size() - 1);  // the turn that failed, so that the chat can go on
    }
  }
}

ExitCode RunChat(const std::vector<std::string>& /*words*/) {
  const absl::StatusOr<schedule::Request> options = ReadGenerationFlags();
  if (!options.ok()) {
    return Fail(ExitCode::kUsage, options.status());
  }
  return WithLocalModel(nullptr,
                        [&options](engine::Replica& replica, absl::Duration /*load_time*/) {
                          return ChatWith(replica, *options);
                        });
}

}  // namespace

Subcommand ChatSubcommand() {
  std::vector<const char*> flags = {"model", "system"};
  for (const std::vector<const char*>& group : {GenerationFlags(), ReplicaFlags({"quiet"})}) {
    flags.insert(flags.end(), group.begin(), group.end());
  }
  return {
      .name = "chat",
      .summary = "Talk to a model, line by line, with its history",
      .synopsis = "--model FILE [--system TEXT] [flags]",
      .example = "trireme chat --model model.gguf --system \"You answer in one short sentence.\"",
      .flags = std::move(flags),
      .words_max = 0,
      .run = RunChat};
}

}  // namespace trireme::launcher

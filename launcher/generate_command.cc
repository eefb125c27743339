#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/endpoint.h"
#include "launcher/generation.h"
#include "launcher/generation_flags.h"
#include "launcher/local_model.h"
#include "launcher/prompts.h"
#include "launcher/replica_options.h"

ABSL_FLAG(bool, json, false, "print JSON instead of text");
ABSL_FLAG(std::string, endpoint, "",
          "a serving replica instead of --model, as in --endpoint 127.0.0.1:8080");

namespace trireme::launcher {
namespace {

void PrintText(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

ExitCode GenerateWith(engine::Replica& replica, absl::Duration load_time,
                      const PromptChoice& choice, const schedule::Request& options, bool as_json) {
  absl::StatusOr<std::vector<std::vector<int32_t>>> prompts =
      TokenizePrompts(choice, replica.text(), replica.info().model.vocabulary);
  if (!prompts.ok()) {
    return Fail(ExitCodeOfUsage(prompts.status()), prompts.status());
  }
  std::vector<schedule::Request> requests;
  for (std::vector<int32_t>& prompt : *prompts) {
    requests.push_back(options);
    requests.back().prompt = std::move(prompt);
    requests.back().want_text = replica.text().tokenizer != nullptr;
  }
  const bool is_streaming = !as_json && requests.size() == 1;
  const TextReader on_text = [](size_t /*index*/, absl::string_view text) { PrintText(text); };
  const std::vector<Generation> generations =
      Generate(replica.controller(), std::move(requests), is_streaming ? on_text : TextReader());
  ExitCode code = ExitCode::kOk;
  for (const Generation& generation : generations) {
    if (as_json || !is_streaming) {
      absl::PrintF("%s\n", GenerationJson(generation, load_time)
                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else if (replica.text().tokenizer == nullptr) {
      absl::PrintF("%s\n", nlohmann::json(generation.token_ids).dump());
    } else {
      PrintText("\n");
    }
    if (!generation.ending.status.ok()) {
      code = Fail(ExitCodeOfReplica(generation.ending.status), generation.ending.status);
    }
  }
  return code;
}

ExitCode RunGenerate(const std::vector<std::string>& /*words*/) {
  const absl::StatusOr<PromptChoice> choice = ReadPromptFlags();
  if (!choice.ok()) {
    return Fail(absl::IsNotFound(choice.status()) ? ExitCode::kMissingFile : ExitCode::kUsage,
                choice.status());
  }
  const absl::StatusOr<schedule::Request> options = ReadGenerationFlags();
  if (!options.ok()) {
    return Fail(ExitCode::kUsage, options.status());
  }
  const bool as_json = absl::GetFlag(FLAGS_json);
  const std::string endpoint = absl::GetFlag(FLAGS_endpoint);
  if (!endpoint.empty()) {
    if (const absl::Status status =
            RefuseReplicaFlags("is for a replica of one's own, and --endpoint asks one that "
                               "already runs; leave one of "
                               "them out");
        !status.ok()) {
      return Fail(ExitCode::kUsage, status);
    }
    return GenerateAtEndpoint(endpoint, *choice, *options, as_json);
  }
  return WithLocalModel(nullptr, [&](engine::Replica& replica, absl::Duration load_time) {
    return GenerateWith(replica, load_time, *choice, *options, as_json);
  });
}

}  // namespace

Subcommand GenerateSubcommand() {
  std::vector<const char*> flags = {"model", "endpoint"};
  for (const std::vector<const char*>& group :
       {PromptFlags(), GenerationFlags(), ReplicaFlags({"json", "quiet"})}) {
    flags.insert(flags.end(), group.begin(), group.end());
  }
  return {
      .name = "generate",
      .summary = "Continue a prompt or answer a message",
      .synopsis =
          "(--model FILE | --endpoint HOST:PORT) (--prompt TEXT | --chat TEXT | --prompt-file F | "
          "--token-ids IDS) [flags]",
      .example =
          "trireme generate --model model.gguf --chat \"What is the capital of France?\" --tensor "
          "2",
      .flags = std::move(flags),
      .words_max = 0,
      .run = RunGenerate};
}

}  // namespace trireme::launcher

#include "launcher/endpoint.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "launcher/command_line.h"
#include "launcher/generation.h"
#include "launcher/generation_flags.h"
#include "launcher/prompts.h"
#include "launcher/remote_generate.h"
#include "runtime/base/status_macros.h"

namespace trireme::launcher {
namespace {

RemoteGenerateOptions RemoteOptions(const std::string& endpoint, const schedule::Request& options) {
  RemoteGenerateOptions remote;
  remote.endpoint = endpoint;
  remote.max_tokens = options.stopping.max_tokens;
  const GivenSampling given = ReadGivenSampling();
  remote.temperature = given.temperature;
  remote.top_k = given.top_k;
  remote.top_p = given.top_p;
  remote.min_p = given.min_p;
  remote.seed = given.seed;
  remote.stop_strings = options.stopping.stop_strings;
  remote.ignore_eos = options.stopping.ignore_eos;
  return remote;
}

// One call for each prompt of the choice.
absl::StatusOr<std::vector<RemoteGenerateOptions>> CallsOf(const RemoteGenerateOptions& common,
                                                           const PromptChoice& choice) {
  std::vector<RemoteGenerateOptions> calls;
  const auto add = [&calls, &common]() -> RemoteGenerateOptions& {
    return calls.emplace_back(common);
  };
  // The vocabulary is the server's business.
  const auto add_ids = [&add](const nlohmann::json& list, absl::string_view where) -> absl::Status {
    ASSIGN_OR_RETURN(add().token_ids, TokenIdsOf(list, int64_t{INT32_MAX} + 1, where));
    return absl::OkStatus();
  };
  switch (choice.kind) {
    case PromptChoice::Kind::kText:
      add().text = choice.text;
      break;
    case PromptChoice::Kind::kMessages:
      add();
      for (const auto& message : choice.messages) {
        calls.back().messages.push_back({.role = message["role"], .content = message["content"]});
      }
      break;
    case PromptChoice::Kind::kTokenIds:
      RETURN_IF_ERROR(add_ids(choice.list, "--token-ids"));
      break;
    case PromptChoice::Kind::kList:
      for (const nlohmann::json& entry : choice.list) {
        if (entry.is_string()) {
          add().text = entry.get<std::string>();
        } else if (entry.is_array()) {
          RETURN_IF_ERROR(add_ids(entry, absl::StrCat("--prompt-file: prompt ", calls.size())));
        } else {
          return absl::InvalidArgumentError(absl::StrCat("--prompt-file: entry ", calls.size(),
                                                         " is neither text nor token ids"));
        }
      }
      break;
  }
  return calls;
}

Generation FromRemote(RemoteGenerateResult result) {
  Generation generation;
  generation.prompt = std::move(result.prompt_token_ids);
  generation.token_ids = std::move(result.token_ids);
  generation.text = std::move(result.text);
  generation.ending.reason = result.finish_reason;
  generation.first_token = result.first_token;
  generation.total = result.total;
  return generation;
}

}  // namespace

ExitCode GenerateAtEndpoint(const std::string& endpoint, const PromptChoice& choice,
                            const schedule::Request& options, bool as_json) {
  const auto calls = CallsOf(RemoteOptions(endpoint, options), choice);
  if (!calls.ok()) {
    return Fail(ExitCode::kUsage, calls.status());
  }
  const bool is_streaming = !as_json && calls->size() == 1;
  for (RemoteGenerateOptions call : *calls) {
    call.want_prompt_token_ids = !is_streaming;
    absl::StatusOr<RemoteGenerateResult> result =
        GenerateRemotely(call, [is_streaming](absl::string_view text) {
          if (is_streaming) {
            std::fwrite(text.data(), 1, text.size(), stdout);
            std::fflush(stdout);
          }
        });
    if (!result.ok()) {
      return Fail(ExitCodeOfReplica(result.status()), result.status());
    }
    if (is_streaming) {
      std::fputs("\n", stdout);
    } else {
      absl::PrintF("%s\n", GenerationJson(FromRemote(*std::move(result)), absl::ZeroDuration())
                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
  }
  return ExitCode::kOk;
}

}  // namespace trireme::launcher

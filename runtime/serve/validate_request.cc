#include "runtime/serve/validate_request.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine.pb.h"
#include "inference.pb.h"
#include "runtime/serve/grpc_status.h"
#include "runtime/serve/validate_delivery.h"

namespace trireme::serve {
namespace {

std::string At(absl::string_view path, absl::string_view field) {
  return absl::StrCat(path, path.empty() ? "" : ".", field);
}

bool IsIdCharacter(char character) {
  return absl::ascii_isalnum(static_cast<unsigned char>(character)) || character == '.' ||
         character == '_' || character == ':' || character == '/' || character == '-';
}

absl::Span<const int32_t> View(const google::protobuf::RepeatedField<int32_t>& ids) {
  return absl::MakeConstSpan(ids.data(), static_cast<size_t>(ids.size()));
}

// Neither NaN nor infinity is inside any range.
void CheckRange(absl::string_view path, float value, double minimum, bool minimum_included,
                double maximum, Violations* violations) {
  const double wide = value;
  const bool above = minimum_included ? wide >= minimum : wide > minimum;
  if (!(above && wide <= maximum)) {
    violations->Invalid(path, absl::StrFormat("%g is outside %c%g, %g]", wide,
                                              minimum_included ? '[' : '(', minimum, maximum));
  }
}

void CheckAtLeastOne(absl::string_view path, int64_t value, Violations* violations) {
  if (value < 1) {
    violations->Invalid(path, absl::StrCat(value, " is below 1"));
  }
}

void CheckUnsupportedSampling(absl::string_view path, const v1::Sampling& sampling,
                              Violations* violations) {
  const auto penalty = [&](absl::string_view field, bool is_set, float value, double minimum,
                           bool minimum_included) {
    if (is_set) {
      CheckRange(At(path, field), value, minimum, minimum_included, 2, violations);
      violations->Unsupported(At(path, field));
    }
  };
  penalty("frequency_penalty", sampling.has_frequency_penalty(), sampling.frequency_penalty(), -2,
          true);
  penalty("presence_penalty", sampling.has_presence_penalty(), sampling.presence_penalty(), -2,
          true);
  penalty("repetition_penalty", sampling.has_repetition_penalty(), sampling.repetition_penalty(), 0,
          false);
  if (!sampling.logit_bias().empty()) {
    violations->Unsupported(At(path, "logit_bias"));
  }
}

sample::SamplingOptions CheckSampling(absl::string_view path, const v1::Sampling& sampling,
                                      const ModelInfo& model, Violations* violations) {
  sample::SamplingOptions options = model.default_sampling;
  if (sampling.has_temperature()) {
    CheckRange(At(path, "temperature"), sampling.temperature(), 0, true, 2, violations);
    options.temperature = sampling.temperature() + 0.0f;  // -0 becomes 0
  }
  if (sampling.has_top_p()) {
    CheckRange(At(path, "top_p"), sampling.top_p(), 0, false, 1, violations);
    options.top_p = sampling.top_p();
  }
  if (sampling.has_min_p()) {
    CheckRange(At(path, "min_p"), sampling.min_p(), 0, true, 1, violations);
    options.min_p = sampling.min_p();
  }
  if (sampling.has_top_k()) {
    CheckAtLeastOne(At(path, "top_k"), sampling.top_k(), violations);
    // More than the whole vocabulary is the whole vocabulary.
    options.top_k = static_cast<int32_t>(std::min(sampling.top_k(), model.vocabulary_size));
  }
  CheckUnsupportedSampling(path, sampling, violations);
  return options;
}

void CheckStopStrings(absl::string_view path, const v1::Stopping& stopping,
                      const RequestLimits& limits, Violations* violations) {
  if (stopping.stop_strings_size() > limits.stop_strings_max) {
    violations->Invalid(path, absl::StrCat(stopping.stop_strings_size(), " strings; at most ",
                                           limits.stop_strings_max, " are allowed"));
    return;
  }
  for (int index = 0; index < stopping.stop_strings_size(); ++index) {
    const int64_t bytes = static_cast<int64_t>(stopping.stop_strings(index).size());
    if (bytes < 1 || bytes > limits.stop_string_bytes_max) {
      violations->Invalid(absl::StrCat(path, "[", index, "]"),
                          absl::StrCat("has ", bytes, " bytes; 1 to ", limits.stop_string_bytes_max,
                                       " are allowed"));
    }
  }
}

schedule::StoppingOptions CheckStopping(absl::string_view path, const v1::Stopping& stopping,
                                        const ModelInfo& model, Violations* violations) {
  schedule::StoppingOptions options;
  // The context ends every stream, so more than its length means its length.
  options.max_tokens = model.context_length;
  if (stopping.has_max_tokens()) {
    CheckAtLeastOne(At(path, "max_tokens"), stopping.max_tokens(), violations);
    options.max_tokens = std::min(stopping.max_tokens(), model.context_length);
  }
  if (stopping.has_min_tokens()) {
    if (stopping.min_tokens() < 0) {
      violations->Invalid(At(path, "min_tokens"),
                          absl::StrCat(stopping.min_tokens(), " is below 0"));
    } else if (stopping.has_max_tokens() && stopping.min_tokens() > stopping.max_tokens()) {
      violations->Invalid(
          At(path, "min_tokens"),
          absl::StrCat(stopping.min_tokens(), " is above max_tokens, ", stopping.max_tokens()));
    }
    violations->Unsupported(At(path, "min_tokens"));
  }
  if (stopping.has_include_stop()) {
    violations->Unsupported(At(path, "include_stop"));
  }
  CheckStopStrings(At(path, "stop_strings"), stopping, model.limits, violations);
  options.stop_strings.assign(stopping.stop_strings().begin(), stopping.stop_strings().end());
  if (stopping.stop_token_ids_size() > model.limits.stop_token_ids_max) {
    violations->Invalid(At(path, "stop_token_ids"),
                        absl::StrCat(stopping.stop_token_ids_size(), " ids; at most ",
                                     model.limits.stop_token_ids_max, " are allowed"));
  } else {
    CheckTokenIds(At(path, "stop_token_ids"), View(stopping.stop_token_ids()), model, violations);
    options.stop_token_ids.assign(stopping.stop_token_ids().begin(),
                                  stopping.stop_token_ids().end());
  }
  options.ignore_eos = stopping.ignore_eos();
  return options;
}

void CheckConstraint(absl::string_view path, const v1::Constraint& constraint,
                     Violations* violations) {
  using Kind = v1::Constraint::KindCase;
  absl::string_view field;
  switch (constraint.kind_case()) {
    case Kind::kJsonObject:
      field = "json_object";
      break;
    case Kind::kJsonSchema:
      field = "json_schema";
      break;
    case Kind::kRegex:
      field = "regex";
      break;
    case Kind::kGrammar:
      field = "grammar";
      break;
    case Kind::kChoice:
      field = "choice";
      break;
    case Kind::kStructuralTag:
      field = "structural_tag";
      break;
    case Kind::KIND_NOT_SET:
      break;
  }
  if (!field.empty()) {
    violations->Unsupported(At(path, field));
  }
  if (constraint.has_start_after()) {
    violations->Unsupported(At(path, "start_after"));
  }
}

void CheckOutput(const v1::Output& output, ValidatedGenerate* validated, Violations* violations) {
  constexpr int64_t kAlternativesMax = 20;
  if (output.has_logprobs()) {
    if (output.logprobs() < 0 || output.logprobs() > kAlternativesMax) {
      violations->Invalid("output.logprobs", absl::StrCat(output.logprobs(), " is outside [0, ",
                                                          kAlternativesMax, "]"));
    } else if (output.logprobs() > 0) {
      violations->Unsupported("output.logprobs");
    }
    validated->request.want_logprobs = true;
  }
  if (output.has_prompt_logprobs()) violations->Unsupported("output.prompt_logprobs");
  if (output.has_echo()) violations->Unsupported("output.echo");
  if (output.has_skip_special_tokens()) violations->Unsupported("output.skip_special_tokens");
  if (output.has_spaces_between_special_tokens()) {
    violations->Unsupported("output.spaces_between_special_tokens");
  }
  validated->request.want_text = !output.has_want_text() || output.want_text();
  validated->want_token_ids = !output.has_want_token_ids() || output.want_token_ids();
  validated->want_bytes = output.want_bytes();
}

void CheckTraceTags(const v1::GenerateRequest& request, const RequestLimits& limits,
                    Violations* violations) {
  constexpr size_t kTagBytesMax = 128;
  if (static_cast<int64_t>(request.trace_tags().size()) > limits.trace_tags_max) {
    violations->Invalid("trace_tags", absl::StrCat(request.trace_tags().size(), " tags; at most ",
                                                   limits.trace_tags_max, " are allowed"));
    return;
  }
  for (const auto& [name, value] : request.trace_tags()) {
    if (name.size() > kTagBytesMax || value.size() > kTagBytesMax) {
      violations->Invalid("trace_tags",
                          absl::StrCat("a name or value is longer than ", kTagBytesMax, " bytes"));
    }
  }
}

void CheckInput(const v1::GenerateRequest& request, const ModelInfo& model,
                ValidatedGenerate* validated, Violations* violations) {
  using Input = v1::GenerateRequest::InputCase;
  switch (request.input_case()) {
    case Input::kText:
      CheckText("text", request.text(), model, violations);
      break;
    case Input::kTokens: {
      const absl::Span<const int32_t> ids = View(request.tokens().token_ids());
      CheckTokenIds("tokens.token_ids", ids, model, violations);
      validated->request.prompt.assign(ids.begin(), ids.end());
      break;
    }
    case Input::kChat:
      CheckChat("chat", request.chat(), model, violations);
      break;
    case Input::INPUT_NOT_SET:
      violations->Invalid("input", "is missing: set text, tokens or chat");
      break;
  }
}

void CheckChoices(const v1::ExecuteRequest& request, const ModelInfo& model, int64_t max_tokens,
                  ValidatedExecute* validated, Violations* violations) {
  if (request.choices_size() > model.limits.choices_max) {
    violations->Invalid("choices", absl::StrCat(request.choices_size(), " choices; at most ",
                                                model.limits.choices_max, " are allowed"));
    return;
  }
  for (int index = 0; index < request.choices_size(); ++index) {
    const std::string path = absl::StrCat("choices[", index, "]");
    const v1::ChoiceState& state = request.choices(index);
    const absl::Span<const int32_t> emitted = View(state.emitted());
    CheckTokenIds(At(path, "emitted"), emitted, model, violations);
    // As many: the last attempt was lost before it could say that it had finished.
    if (static_cast<int64_t>(emitted.size()) > max_tokens) {
      violations->Invalid(
          At(path, "emitted"),
          absl::StrCat(emitted.size(), " tokens are more than max_tokens, ", max_tokens));
    }
    if (absl::c_any_of(validated->choices, [&](const ValidatedChoice& other) {
          return other.choice == state.choice();
        })) {
      violations->Invalid(At(path, "choice"), absl::StrCat(state.choice(), " is there twice"));
    }
    validated->choices.push_back(
        {state.choice(), std::vector<int32_t>(emitted.begin(), emitted.end())});
  }
  if (validated->choices.empty()) {
    validated->choices.emplace_back();
  }
}

}  // namespace

absl::Status CheckModelName(absl::string_view name, const ModelInfo& model) {
  if (name.empty() || name == model.id) {
    return absl::OkStatus();
  }
  return WithReason(absl::NotFoundError(absl::StrCat("there is no model ", Quoted(name),
                                                     " here; ListModels tells which there are")),
                    kReasonModel);
}

void CheckName(absl::string_view path, absl::string_view name, const RequestLimits& limits,
               Violations* violations) {
  if (static_cast<int64_t>(name.size()) > limits.request_id_bytes_max) {
    violations->Invalid(path, absl::StrCat("has ", name.size(), " bytes; at most ",
                                           limits.request_id_bytes_max, " are allowed"));
  } else if (!absl::c_all_of(name, IsIdCharacter)) {
    violations->Invalid(
        path, absl::StrCat(Quoted(name), " has a character that is none of A-Z a-z 0-9 . _ : / -"));
  }
}

void CheckText(absl::string_view path, absl::string_view text, const ModelInfo& model,
               Violations* violations) {
  const int64_t bytes_max = model.limits.prompt_bytes_max;
  if (text.empty()) {
    violations->Invalid(path, "is empty; give at least one character");
  } else if (bytes_max > 0 && static_cast<int64_t>(text.size()) > bytes_max) {
    violations->Invalid(
        path,
        absl::StrCat(text.size(), " bytes cannot fit into the context of ", model.context_length,
                     " tokens (at most ", bytes_max, " bytes)"),
        kReasonPromptTooLong);
  }
}

void CheckChat(absl::string_view path, const v1::ChatInput& chat, const ModelInfo& model,
               Violations* violations) {
  constexpr size_t kRoleBytesMax = 64;
  const RequestLimits& limits = model.limits;
  if (chat.messages_size() < 1 || chat.messages_size() > limits.messages_max) {
    violations->Invalid(At(path, "messages"), absl::StrCat(chat.messages_size(), " messages; 1 to ",
                                                           limits.messages_max, " are allowed"));
    return;
  }
  int64_t content_bytes = 0;
  for (int index = 0; index < chat.messages_size(); ++index) {
    const v1::ChatMessage& message = chat.messages(index);
    content_bytes += static_cast<int64_t>(message.content().size());
    if (message.role().empty() || message.role().size() > kRoleBytesMax) {
      violations->Invalid(absl::StrCat(path, ".messages[", index, "].role"),
                          absl::StrCat("has ", message.role().size(), " bytes; 1 to ",
                                       kRoleBytesMax, " are allowed"));
    }
  }
  if (limits.prompt_bytes_max > 0 && content_bytes > limits.prompt_bytes_max) {
    violations->Invalid(
        At(path, "messages"),
        absl::StrCat(content_bytes,
                     " bytes of content cannot fit into the "
                     "context of ",
                     model.context_length, " tokens (at most ", limits.prompt_bytes_max, " bytes)"),
        kReasonPromptTooLong);
  }
  int64_t tools_bytes = 0;
  for (const std::string& tool : chat.tools_json()) {
    tools_bytes += static_cast<int64_t>(tool.size());
  }
  if (chat.tools_json_size() > limits.tools_max || tools_bytes > limits.tools_bytes_max) {
    violations->Invalid(
        At(path, "tools_json"),
        absl::StrCat(chat.tools_json_size(), " tools of ", tools_bytes, " bytes; at most ",
                     limits.tools_max, " tools of ", limits.tools_bytes_max, " bytes are allowed"));
  }
  for (const auto& [name, value] : chat.template_variables()) {
    if (!absl::c_linear_search(model.template_variables, name)) {
      violations->Invalid(At(path, "template_variables"),
                          absl::StrCat(Quoted(name), " is not a variable that this server allows"),
                          kReasonBadTemplateInput);
    }
  }
  if (chat.has_continue_final_message()) {
    violations->Unsupported(At(path, "continue_final_message"));
  }
}

void CheckTokenIds(absl::string_view path, absl::Span<const int32_t> ids, const ModelInfo& model,
                   Violations* violations) {
  for (size_t index = 0; index < ids.size(); ++index) {
    if (ids[index] < 0 || ids[index] >= model.vocabulary_size) {
      violations->Invalid(
          absl::StrCat(path, "[", index, "]"),
          absl::StrCat("token id ", ids[index], " is outside [0, ", model.vocabulary_size - 1, "]"),
          kReasonBadTokenId);
      return;
    }
  }
}

absl::Status CheckPrompt(absl::string_view path, absl::Span<const int32_t> prompt,
                         const ModelInfo& model) {
  Violations violations;
  const int64_t tokens = static_cast<int64_t>(prompt.size());
  if (tokens == 0) {
    violations.Invalid(path, "gives no token; the prompt needs at least one");
  } else if (tokens >= model.context_length) {
    violations.Invalid(
        path,
        absl::StrCat("the prompt has ", tokens, " tokens and the context ", model.context_length,
                     "; at most ", model.context_length - 1, " leave room for an answer"),
        kReasonPromptTooLong);
  }
  return violations.ToStatus();
}

absl::StatusOr<ValidatedGenerate> ValidateGenerate(const v1::GenerateRequest& request,
                                                   const ModelInfo& model) {
  if (absl::Status status = CheckModelName(request.model(), model); !status.ok()) {
    return status;
  }
  Violations violations;
  ValidatedGenerate validated;
  CheckName("request_id", request.request_id(), model.limits, &violations);
  validated.request.id = request.request_id();
  CheckInput(request, model, &validated, &violations);
  validated.request.sampling = CheckSampling("sampling", request.sampling(), model, &violations);
  validated.seed_given = request.sampling().has_seed();
  validated.request.sampling.seed = request.sampling().seed();
  if (request.sampling().has_n()) {
    validated.choices = request.sampling().n();
    if (validated.choices < 1 || validated.choices > model.limits.choices_max) {
      violations.Invalid("sampling.n", absl::StrCat(validated.choices, " is outside [1, ",
                                                    model.limits.choices_max, "]"));
    }
  }
  validated.request.stopping = CheckStopping("stopping", request.stopping(), model, &violations);
  CheckConstraint("constraint", request.constraint(), &violations);
  CheckOutput(request.output(), &validated, &violations);
  validated.request.delivery = CheckDelivery(request.delivery(), model, &violations);
  CheckCache(request.cache(), &violations);
  CheckTraceTags(request, model.limits, &violations);
  if (absl::Status status = violations.ToStatus(); !status.ok()) {
    return status;
  }
  return validated;
}

absl::StatusOr<ValidatedExecute> ValidateExecute(const v1::ExecuteRequest& request,
                                                 const ModelInfo& model) {
  Violations violations;
  ValidatedExecute validated;
  CheckName("request_id", request.request_id(), model.limits, &violations);
  if (request.request_id().empty()) {
    violations.Invalid("request_id", "is empty; attempts of a request are told apart by it");
  }
  CheckAtLeastOne("attempt", request.attempt(), &violations);
  const absl::Span<const int32_t> ids = View(request.token_ids());
  CheckTokenIds("token_ids", ids, model, &violations);
  validated.request.id = request.request_id();
  validated.request.prompt.assign(ids.begin(), ids.end());
  validated.request.sampling = CheckSampling("sampling", request.sampling(), model, &violations);
  validated.request.sampling.seed = request.seed();
  validated.request.stopping = CheckStopping("stopping", request.stopping(), model, &violations);
  validated.request.want_text = request.want_text();
  validated.request.want_logprobs = request.want_logprobs();
  CheckConstraint("constraint", request.constraint(), &violations);
  CheckChoices(request, model, validated.request.stopping.max_tokens, &validated, &violations);
  if (!request.cache_salt().empty()) violations.Unsupported("cache_salt");
  CheckName("lease", request.lease(), model.limits, &violations);
  if (absl::Status status = violations.ToStatus(); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckPrompt("token_ids", validated.request.prompt, model);
      !status.ok()) {
    return status;
  }
  return validated;
}

}  // namespace trireme::serve

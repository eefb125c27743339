#include "launcher/model_facade.h"

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/base/fingerprint.h"
#include "runtime/cache/kv_format.h"

ABSL_FLAG(std::string, model_id, "",
          "the name that clients use for the model; empty: the file's name");

namespace trireme::launcher {
namespace {

// Variables that published chat templates let a caller set.
constexpr const char* kTemplateVariables[] = {"enable_thinking", "thinking",     "reasoning_effort",
                                              "date_string",     "custom_tools", "documents"};

std::string HashText(absl::string_view text) {
  Fingerprint hash;
  hash.Add(text);
  return absl::StrFormat("%016x", hash.value());
}

// Two replicas with equal fingerprints give equal bits: the kernel table is not part of it, since
// all tables agree. The default mode is named by the kinds that formats take beside float32
// (kernels::ActivationKind), so that a new kind makes new fingerprints.
std::string ArithmeticFingerprint(uint64_t fingerprint, const engine::RankOptions& options) {
  return absl::StrFormat(
      "%016x-%s-%s-" TRIREME_VERSION, fingerprint,
      options.activations == model::ActivationMode::kAuto ? "int8-bf16" : "float32",
      cache::KvFormatName(options.kv_format));
}

serve::ModelInfo ModelInfoOf(const ServedModel& served, const engine::RankOptions& options) {
  const engine::ModelText& text = *served.text;
  serve::ModelInfo model;
  model.id = served.id;
  model.family = served.spec->family;
  model.context_length = served.context;
  model.vocabulary_size = served.spec->vocabulary;
  model.default_sampling = text.default_sampling;
  model.fingerprint = ArithmeticFingerprint(served.fingerprint, options);
  if (text.tokenizer != nullptr) {
    model.bos_token_id = text.tokenizer->bos_id();
    model.eos_token_ids.assign(text.tokenizer->end_of_generation_ids().begin(),
                               text.tokenizer->end_of_generation_ids().end());
    model.bos_token = text.bos_text;
    model.eos_token = text.eos_text;
    model.template_hash = HashText(text.tokenizer->chat_template());
  }
  if (text.chat_template != nullptr) {
    for (const char* name : kTemplateVariables) {
      if (text.chat_template->UsesVariable(name)) {
        model.template_variables.emplace_back(name);
      }
    }
  }
  return model;
}

}  // namespace

serve::ReplicaFacade FacadeOfModel(const ServedModel& model, const engine::RankOptions& options) {
  serve::ReplicaFacade facade;
  facade.tokenizer = model.text->tokenizer.get();
  facade.chat_template = model.text->chat_template.get();
  facade.model = ModelInfoOf(model, options);
  return facade;
}

std::string ModelId(const std::string& path) {
  const std::string given = absl::GetFlag(FLAGS_model_id);
  if (!given.empty()) {
    return given;
  }
  absl::string_view name = path;
  name.remove_prefix(name.rfind('/') + 1);
  return std::string(absl::EndsWith(name, ".gguf") ? name.substr(0, name.size() - 5) : name);
}

}  // namespace trireme::launcher

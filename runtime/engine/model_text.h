// The text side of a model, from what its checkpoint carries: tokenizer and chat template.
#ifndef TRIREME_RUNTIME_ENGINE_MODEL_TEXT_H_
#define TRIREME_RUNTIME_ENGINE_MODEL_TEXT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/sample/sampling_options.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/tokenizer.h"
#include "runtime/weights/gguf.h"

namespace trireme::engine {

struct ModelText {
  std::unique_ptr<text::Tokenizer>
      tokenizer;  // null: the checkpoint has no vocabulary; token ids only

  // Null when there is none or it cannot be used; chat_template_status then says why. A broken
  // template does not keep a model from loading: it is an error for who wants to chat.
  std::unique_ptr<text::ChatTemplate> chat_template;
  absl::Status chat_template_status;
  std::string
      bos_text;  // spelling of the first and the end token, for templates; empty without one
  std::string eos_text;

  // What the model's own files advise for requests that say nothing of it.
  sample::SamplingOptions default_sampling = {.temperature = 1.0F};
};

// InvalidArgument or Unimplemented, naming the file and the key, for a vocabulary that cannot be
// used.
absl::StatusOr<ModelText> ReadModelText(const weights::GgufFile& file);

// The same for what lies at `path`, without weights: a GGUF file, a tokenizer's own file
// (text/tokenizer_files.h), or a model's folder with one of them (a GGUF file last) and what its
// config files say. Errors: those of reading files; DataLoss for a tokenizer that cannot be
// used, with the file's name.
absl::StatusOr<ModelText> OpenModelText(const std::string& path);

// The raw keys of tokenizer.ggml.*; NotFound when the checkpoint has no vocabulary at all.
absl::StatusOr<text::VocabularyData> ReadVocabulary(const weights::GgufFile& file);

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_MODEL_TEXT_H_

#include <sys/statvfs.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/ggml_type.h"
#include "runtime/weights/synthetic_model.h"

ABSL_FLAG(std::string, like, "llama-1b",
          "published model whose shape is taken, as in --like llama-8b");
ABSL_FLAG(std::string, format, "q4_k", "format of all matrices, as in --format q8_0");
ABSL_FLAG(int64_t, layers, 0, "layers, as in --layers 2; 0: as many as the model has");
ABSL_FLAG(uint64_t, weights_seed, 1, "equal seeds give equal files, as in --weights-seed 7");

namespace trireme::launcher {
namespace {

constexpr int64_t kLayersMax = 1000;

// Formats that a GGUF file can hold.
absl::StatusOr<kernels::WeightFormat> FormatOf(const std::string& name) {
  std::vector<std::string> names;
  for (const weights::GgmlType& type : weights::AllGgmlTypes()) {
    if (const auto format = weights::WeightFormatOf(type.id); format.has_value()) {
      names.push_back(absl::AsciiStrToLower(type.name));
      if (names.back() == absl::AsciiStrToLower(name)) {
        return *format;
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--format ", name, ": there are ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<weights::SyntheticModel> ModelOfFlags() {
  weights::SyntheticModel model;
  ASSIGN_OR_RETURN(model.shape, weights::FindSyntheticShape(absl::GetFlag(FLAGS_like)));
  ASSIGN_OR_RETURN(model.format, FormatOf(absl::GetFlag(FLAGS_format)));
  const int64_t layers = absl::GetFlag(FLAGS_layers);
  if (layers < 0 || layers > kLayersMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--layers is %d; it must be between 0 and %d", layers, kLayersMax));
  }
  if (layers > 0) {
    model.shape.layers = layers;
  }
  model.seed = absl::GetFlag(FLAGS_weights_seed);
  return model;
}

absl::Status CheckRoom(const std::string& path, int64_t bytes) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  struct statvfs room = {};
  if (::statvfs(folder.c_str(), &room) != 0) {
    return absl::OkStatus();  // opening the file tells what is wrong
  }
  const auto free = static_cast<int64_t>(room.f_bavail) * static_cast<int64_t>(room.f_frsize);
  if (bytes > free) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: the model takes %d bytes, and %d are free there; choose fewer "
                        "--layers, another --format or another disk",
                        path, bytes, free));
  }
  return absl::OkStatus();
}

ExitCode RunSynthesize(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Fail(ExitCode::kUsage, absl::InvalidArgumentError(
                                      "name the file to write, as in trireme synthesize out.gguf"));
  }
  const absl::StatusOr<weights::SyntheticModel> model = ModelOfFlags();
  if (!model.ok()) {
    return Fail(ExitCode::kUsage, model.status());
  }
  const absl::StatusOr<int64_t> bytes = weights::SyntheticBytes(*model);
  if (!bytes.ok()) {
    return Fail(ExitCode::kUsage, bytes.status());
  }
  if (const absl::Status status = CheckRoom(words[0], *bytes); !status.ok()) {
    return Fail(ExitCode::kDoesNotFit, status);
  }
  if (const absl::Status status = weights::WriteSyntheticModel(*model, words[0]); !status.ok()) {
    return Fail(ExitCode::kInputOutput, status);
  }
  absl::PrintF("%s: %d layers like %s, %s, %.1f MB of weights\n", words[0], model->shape.layers,
               model->shape.name, kernels::InfoOf(model->format).name,
               static_cast<double>(*bytes) / 1e6);
  return ExitCode::kOk;
}

}  // namespace

Subcommand SynthesizeSubcommand() {
  return {.name = "synthesize",
          .summary = "Writes a GGUF model of random weights in a published model's shape",
          .synopsis = "OUT.gguf [--like NAME] [--format FORMAT] [--layers N] [--weights-seed N]",
          .example = "trireme synthesize --like llama-1b --format q4_0 llama-1b-q4_0.gguf",
          .flags = {"like", "format", "layers", "weights_seed"},
          .words_max = 1,
          .run = RunSynthesize};
}

}  // namespace trireme::launcher

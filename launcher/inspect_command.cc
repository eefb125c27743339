#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "kernels/formats/decode.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/load_progress.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model_text.h"
#include "runtime/engine/replica.h"
#include "runtime/weights/describe.h"
#include "runtime/weights/generation_defaults.h"
#include "runtime/weights/ggml_type.h"
#include "runtime/weights/gguf.h"
#include "runtime/weights/gguf_checkpoint.h"
#include "runtime/weights/hugging_face_checkpoint.h"
#include "runtime/weights/manifest.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/tensor_values.h"

ABSL_FLAG(std::string, tensor_name, "", "tensor to decode, as in --tensor blk.0.attn_q.weight");
ABSL_FLAG(std::string, values, "",
          "write the tensor's decoded float32 values here, as in --values out.safetensors");
ABSL_FLAG(bool, verify, false,
          "first compare the files with the SHA-256 hashes in the file SHA256SUMS beside them");
ABSL_DECLARE_FLAG(bool, json);

namespace trireme::launcher {
namespace {

// A tensor that can be decoded; an error names the one that was asked for.
absl::StatusOr<const weights::GgufTensor*> FindDecodable(const weights::GgufFile& file,
                                                         const std::string& name) {
  const absl::StatusOr<const weights::GgufTensor*> tensor = file.GetTensor(name);
  if (!tensor.ok()) {
    return absl::InvalidArgumentError(tensor.status().message());  // the file itself is not missing
  }
  if (!weights::WeightFormatOf((*tensor)->type->id).has_value()) {
    return file.TensorError(**tensor, absl::StrCat("has type ", (*tensor)->type->name,
                                                   ", which this build cannot decode"));
  }
  return *tensor;
}

absl::Status WriteValues(const weights::GgufFile& file, const weights::GgufTensor* tensor,
                         const std::string& path) {
  const kernels::WeightFormat format = *weights::WeightFormatOf(tensor->type->id);
  const int64_t columns = tensor->dimensions[0];
  const int64_t rows = tensor->elements / columns;
  const int64_t row_bytes = kernels::StoredRowBytes(format, columns);
  std::vector<int64_t> shape(tensor->dimensions.rend() - std::max(1, tensor->dimension_count),
                             tensor->dimensions.rend());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<weights::SafetensorsWriter> writer,
      weights::SafetensorsWriter::Create(path, {{.name = std::string(tensor->name),
                                                 .type = weights::SafetensorsType::kFloat32,
                                                 .shape = std::move(shape)}}));
  const std::byte* const data = reinterpret_cast<const std::byte*>(file.Data(*tensor).data());
  std::vector<float> values(columns);
  for (int64_t row = 0; row < rows; ++row) {
    kernels::DecodeRow(format, data + row * row_bytes, 0, columns, values.data());
    RETURN_IF_ERROR(writer->Append(absl::MakeConstSpan(values)));
  }
  return writer->Finish();
}

bool IsGguf(const std::string& path) {
  struct stat status = {};
  const bool is_directory = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return !is_directory && !absl::EndsWith(path, ".safetensors") && !absl::EndsWith(path, ".json");
}

// The files that a GGUF file consists of, or itself when it cannot be opened.
std::vector<std::string> PartNames(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  const auto file = weights::GgufFile::Open(path);
  for (int part = 0; file.ok() && part < (*file)->part_count(); ++part) {
    names.push_back(fs::path((*file)->part_name(part)).filename().string());
  }
  return file.ok() ? names : std::vector<std::string>{fs::path(path).filename().string()};
}

// Compares a model's files with the manifest beside them: all that it lists, or those of one GGUF
// model.
ExitCode VerifyFiles(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const std::string parent = fs::path(path).parent_path().string();
  const std::string folder = is_folder ? path : parent.empty() ? "." : parent;
  const auto report =
      weights::CheckManifest(folder, IsGguf(path) ? PartNames(path) : std::vector<std::string>(),
                             ShowProgress("verifying"));
  if (!report.ok()) {
    return Fail(ExitCodeOfFile(report.status()), report.status());
  }
  for (const std::string& fault : report->faults) {
    absl::FPrintF(stderr, "%s\n", fault);
  }
  if (!report->faults.empty()) {
    return Fail(ExitCode::kBadCheckpoint,
                absl::DataLossError(
                    absl::StrFormat("%s/%s: %d files are not as listed; fetch them again", folder,
                                    weights::kManifestName, report->faults.size())));
  }
  absl::FPrintF(stderr, "%s/%s: %d files, %d bytes, all as listed\n", folder,
                weights::kManifestName, report->files, report->bytes);
  return ExitCode::kOk;
}

// All ids that end a stream: those that the tokenizer has beyond the ones named by key come with
// their spelling, and one that it does not end at is none. A tokenizer that cannot be read is left
// to those who need it.
void AddEndsOfVocabulary(const std::string& path, weights::GenerationDefaults* generation) {
  const absl::StatusOr<engine::ModelText> text = engine::OpenModelText(path);
  if (!text.ok() || text->tokenizer == nullptr) {
    return;
  }
  std::vector<weights::EndId>& ends = generation->end_ids;
  const auto goes_on = [&text](const weights::EndId& end) {
    return !text->tokenizer->IsEndOfGeneration(static_cast<int32_t>(end.id));
  };
  ends.erase(std::remove_if(ends.begin(), ends.end(), goes_on), ends.end());
  for (const int32_t id : text->tokenizer->end_of_generation_ids()) {
    const auto is_same = [id](const weights::EndId& known) { return known.id == id; };
    if (std::none_of(ends.begin(), ends.end(), is_same)) {
      const std::string spelling = absl::Utf8SafeCHexEscape(text->tokenizer->TokenText(id));
      ends.push_back({.id = id, .source = absl::StrCat("the vocabulary: ", spelling)});
    }
  }
}

// A Hugging Face directory, or a file of one.
ExitCode InspectDirectory(const std::string& path, const std::string& tensor_name,
                          const std::string& values_path) {
  const auto checkpoint = weights::HuggingFaceCheckpoint::Open(path);
  if (!checkpoint.ok()) {
    return Fail(ExitCodeOfFile(checkpoint.status()), checkpoint.status());
  }
  if (!tensor_name.empty()) {
    const auto tensor = weights::FindTensorRows(**checkpoint, tensor_name);
    const absl::Status status = tensor.ok()
                                    ? weights::WriteTensorValues(*tensor, tensor_name, values_path)
                                    : tensor.status();
    return status.ok() ? ExitCode::kOk : Fail(ExitCodeOfFile(status), status);
  }
  auto generation = weights::ReadGenerationDefaults(**checkpoint);
  if (!generation.ok()) {
    return Fail(ExitCodeOfFile(generation.status()), generation.status());
  }
  AddEndsOfVocabulary(engine::TextFolderOf(**checkpoint), &*generation);
  absl::PrintF("%s", absl::GetFlag(FLAGS_json)
                         ? weights::DescribeAsJson(**checkpoint, *generation)
                         : weights::DescribeAsText(**checkpoint, *generation));
  return ExitCode::kOk;
}

// Of a GGUF file; nothing where its keys are no such values.
std::optional<weights::GenerationDefaults> GenerationOf(const std::string& path) {
  const auto checkpoint = weights::GgufCheckpoint::Open(path);
  if (!checkpoint.ok()) {
    return std::nullopt;
  }
  auto generation = weights::ReadGenerationDefaults(**checkpoint);
  if (!generation.ok()) {
    return std::nullopt;
  }
  AddEndsOfVocabulary(path, &*generation);
  return *std::move(generation);
}

ExitCode RunInspect(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError(
                    "name a model file or directory, as in trireme inspect model.gguf"));
  }
  const std::string name = absl::GetFlag(FLAGS_tensor_name);
  const std::string path = absl::GetFlag(FLAGS_values);
  if (name.empty() != path.empty()) {
    return Fail(ExitCode::kUsage, absl::InvalidArgumentError("--tensor and --values go together"));
  }
  if (absl::GetFlag(FLAGS_verify)) {
    const ExitCode verdict = VerifyFiles(words[0]);
    if (verdict != ExitCode::kOk) {
      return verdict;
    }
  }
  if (!IsGguf(words[0])) {
    return InspectDirectory(words[0], name, path);
  }
  const absl::StatusOr<std::unique_ptr<weights::GgufFile>> file = weights::GgufFile::Open(words[0]);
  if (!file.ok()) {
    return Fail(ExitCodeOfFile(file.status()), file.status());
  }
  if (!name.empty()) {
    const auto tensor = FindDecodable(**file, name);
    if (!tensor.ok()) {
      return Fail(ExitCodeOfFile(tensor.status()), tensor.status());
    }
    const absl::Status status = WriteValues(**file, *tensor, path);
    return status.ok() ? ExitCode::kOk : Fail(ExitCode::kInputOutput, status);
  }
  const std::optional<weights::GenerationDefaults> generation = GenerationOf(words[0]);
  const weights::GenerationDefaults* const shown = generation ? &*generation : nullptr;
  absl::PrintF("%s", absl::GetFlag(FLAGS_json) ? weights::DescribeAsJson(**file, {}, shown)
                                               : weights::DescribeAsText(**file, {}, shown));
  return ExitCode::kOk;
}

}  // namespace

Subcommand InspectSubcommand() {
  return {.name = "inspect",
          .summary =
              "Metadata, tensors, formats and bits per weight of a model file, without loading it",
          .synopsis = "FILE [--verify] [--json] [--tensor NAME --values OUT.safetensors]",
          .example = "trireme inspect model.gguf",
          .flags = {"tensor=tensor_name", "values", "json", "verify"},
          .words_max = 1,
          .run = RunInspect};
}

}  // namespace trireme::launcher

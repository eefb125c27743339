#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/local_model.h"
#include "launcher/prompts.h"
#include "launcher/replica_options.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "runtime/weights/safetensors.h"

ABSL_FLAG(std::string, tokens, "",
          "JSON file {\"sequences\": [[ids], ...]}, as in --tokens texts.json");
ABSL_FLAG(std::string, logits, "",
          "write all logits here, float32 tensors logits.0, logits.1, ... of [tokens, vocabulary]");
ABSL_DECLARE_FLAG(bool, json);

namespace trireme::launcher {
namespace {

// Logits of as many positions are computed and sent at once.
constexpr int32_t kLogitRows = 64;

struct Scored {
  std::vector<double> logprobs;  // [tokens - 1]: natural log-probability of each next token
  std::vector<int32_t> argmax;   // [tokens]
};

double LogSumExp(absl::Span<const float> row) {
  const double maximum = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float logit : row) {
    sum += std::exp(static_cast<double>(logit) - maximum);
  }
  return maximum + std::log(sum);
}

void AddRow(absl::Span<const float> row, size_t position, const std::vector<int32_t>& ids,
            Scored* scored) {
  scored->argmax.push_back(
      static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
  if (position + 1 < ids.size()) {
    scored->logprobs.push_back(static_cast<double>(row[ids[position + 1]]) - LogSumExp(row));
  }
}

absl::StatusOr<std::vector<std::vector<int32_t>>> ReadSequences(const std::string& path,
                                                                int64_t vocabulary) {
  ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJsonFile(path));
  if (!json.is_object() || !json.contains("sequences") || !json["sequences"].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": wanted an object {\"sequences\": [[ids], ...]}"));
  }
  std::vector<std::vector<int32_t>> sequences;
  for (const auto& entry : json["sequences"]) {
    const std::string where = absl::StrCat(path, ": sequence ", sequences.size());
    ASSIGN_OR_RETURN(sequences.emplace_back(), TokenIdsOf(entry, vocabulary, where));
    if (sequences.back().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": is empty; wanted at least one token id"));
    }
  }
  return sequences;
}

absl::StatusOr<std::unique_ptr<weights::SafetensorsWriter>> OpenLogits(
    const std::string& path, const std::vector<std::vector<int32_t>>& sequences,
    int64_t vocabulary) {
  std::vector<weights::SafetensorsTensor> tensors;
  for (size_t i = 0; i < sequences.size(); ++i) {
    tensors.push_back({.name = absl::StrCat("logits.", i),
                       .type = weights::SafetensorsType::kFloat32,
                       .shape = {static_cast<int64_t>(sequences[i].size()), vocabulary}});
  }
  return weights::SafetensorsWriter::Create(path, std::move(tensors));
}

absl::StatusOr<Scored> ScoreOne(engine::Controller& controller, int64_t vocabulary,
                                const std::vector<int32_t>& ids,
                                weights::SafetensorsWriter* writer) {
  Scored scored;
  absl::Status written;
  RETURN_IF_ERROR(controller.Score(ids, [&](int64_t first_row, absl::Span<const float> logits) {
    const int64_t rows = static_cast<int64_t>(logits.size()) / vocabulary;
    for (int64_t i = 0; i < rows; ++i) {
      AddRow(logits.subspan(i * vocabulary, vocabulary), static_cast<size_t>(first_row + i), ids,
             &scored);
    }
    if (writer != nullptr && written.ok()) {
      written = writer->Append(logits);
    }
  }));
  RETURN_IF_ERROR(written);
  return scored;
}

void PrintScores(const std::vector<Scored>& all, bool as_json) {
  nlohmann::ordered_json sequences = nlohmann::ordered_json::array();
  size_t index = 0;
  for (const Scored& scored : all) {
    if (as_json) {
      sequences.push_back({{"logprobs", scored.logprobs}, {"argmax", scored.argmax}});
      continue;
    }
    double sum = 0;
    for (const double logprob : scored.logprobs) {
      sum += logprob;
    }
    const double mean =
        scored.logprobs.empty() ? 0 : sum / static_cast<double>(scored.logprobs.size());
    absl::PrintF("sequence %d: %d tokens, mean log-probability %.6f, perplexity %.4f\n", index++,
                 scored.argmax.size(), mean, std::exp(-mean));
  }
  if (as_json) {
    absl::PrintF("%s\n", nlohmann::ordered_json{{"sequences", std::move(sequences)}}.dump());
  }
}

ExitCode ScoreWith(engine::Replica& replica, const std::string& path) {
  const int64_t vocabulary = replica.info().model.vocabulary;
  const auto sequences = ReadSequences(path, vocabulary);
  if (!sequences.ok()) {
    return Fail(ExitCodeOfFile(sequences.status()), sequences.status());
  }
  std::unique_ptr<weights::SafetensorsWriter> writer;
  if (const std::string out = absl::GetFlag(FLAGS_logits); !out.empty()) {
    auto opened = OpenLogits(out, *sequences, vocabulary);
    if (!opened.ok()) {
      return Fail(ExitCode::kInputOutput, opened.status());
    }
    writer = *std::move(opened);
  }
  std::vector<Scored> all;
  for (const std::vector<int32_t>& ids : *sequences) {
    absl::StatusOr<Scored> scored = ScoreOne(replica.controller(), vocabulary, ids, writer.get());
    if (!scored.ok()) {
      return Fail(ExitCodeOfReplica(scored.status()), scored.status());
    }
    all.push_back(*std::move(scored));
  }
  if (writer != nullptr) {
    if (const absl::Status status = writer->Finish(); !status.ok()) {
      return Fail(ExitCode::kInputOutput, status);
    }
  }
  PrintScores(all, absl::GetFlag(FLAGS_json));
  return ExitCode::kOk;
}

ExitCode RunScore(const std::vector<std::string>& /*words*/) {
  const std::string path = absl::GetFlag(FLAGS_tokens);
  if (path.empty()) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError("--tokens is missing: name a JSON file of token ids"));
  }
  return WithLocalModel(
      [](const weights::Checkpoint& /*checkpoint*/, engine::RankOptions* options) {
        options->limits.logit_rows = std::min(kLogitRows, options->limits.tokens);
        return absl::OkStatus();
      },
      [&path](engine::Replica& replica, absl::Duration /*load_time*/) {
        return ScoreWith(replica, path);
      });
}

}  // namespace

Subcommand ScoreSubcommand() {
  return {.name = "score",
          .summary = "Log-probabilities and logits of given token ids",
          .synopsis = "--model FILE --tokens FILE.json [--logits OUT.safetensors] [flags]",
          .example = "trireme score --model model.gguf --tokens texts.json --json",
          .flags = ReplicaFlags({"model", "tokens", "logits", "json", "quiet"}),
          .words_max = 0,
          .run = RunScore};
}

}  // namespace trireme::launcher

// The style guide as a test: include directions, headers that stand alone, a test for every source
// file, banned words.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Which folders each folder may include, besides itself: the picture of docs/architecture.md.
const std::map<std::string, std::set<std::string>>& AllowedIncludes() {
  static const auto* const allowed = new std::map<std::string, std::set<std::string>>([] {
    std::map<std::string, std::set<std::string>> direct = {
        {"kernels", {}},
        {"topology", {}},
        {"runtime/base", {}},
        {"runtime/device", {"runtime/base", "kernels", "topology"}},
        {"runtime/comm", {"runtime/base", "runtime/device"}},
        {"runtime/spec", {"runtime/base", "kernels", "topology"}},
        {"runtime/weights", {"runtime/spec", "runtime/device"}},
        {"runtime/cache", {"runtime/base", "runtime/device"}},
        {"runtime/model",
         {"runtime/weights", "runtime/cache", "runtime/comm", "runtime/spec", "runtime/device"}},
        {"runtime/sample", {"runtime/device"}},
        {"runtime/text", {"runtime/base"}},
        {"runtime/schedule", {"runtime/cache", "runtime/sample"}},
        {"runtime/engine",
         {"runtime/schedule", "runtime/model", "runtime/sample", "runtime/text", "runtime/comm",
          "topology"}},
        {"runtime/serve", {"runtime/engine"}},
        {"runtime/balance", {"runtime/serve", "runtime/engine"}},
        {"launcher", {"runtime/balance", "runtime/serve", "runtime/engine"}},
    };
    // What a folder may include, its includes may too.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [folder, includes] : direct) {
        std::set<std::string> closed = includes;
        for (const std::string& include : includes) {
          closed.insert(direct[include].begin(), direct[include].end());
        }
        changed = changed || closed.size() > includes.size();
        includes = std::move(closed);
      }
    }
    return direct;
  }());
  return *allowed;
}

// Sources whose test has another name, with that test: several files that make one thing are tested
// as that thing.
const std::map<std::string, std::string>& TestedElsewhere() {
  static const auto* const elsewhere = new std::map<std::string, std::string>{
      {"kernels/cpu/cpu_features.cc", "tests/kernels/cpu_features_test.cc"},
      {"kernels/cpu/kernels_amx.cc", "tests/kernels/check_kernels.cc"},
      {"kernels/cpu/kernels_avx2.cc", "tests/kernels/check_kernels.cc"},
      {"kernels/cpu/kernels_avx512.cc", "tests/kernels/check_kernels.cc"},
      {"kernels/cpu/kernels_avx512bf16.cc", "tests/kernels/check_kernels.cc"},
      {"kernels/cpu/kernels_neon.cc", "tests/kernels/check_kernels.cc"},
      {"kernels/cpu/kernels_portable.cc", "tests/kernels/check_kernels.cc"},
      {"kernels/cpu/machine_limits.cc", "tests/kernels/machine_limits_test.cc"},
      {"kernels/cpu/packed_layout.cc", "tests/kernels/packed_layout_test.cc"},
      {"kernels/cpu/thread_pool.cc", "tests/kernels/thread_pool_test.cc"},
      {"kernels/formats/decode.cc", "tests/kernels/decode_test.cc"},
      {"kernels/formats/hadamard.cc", "tests/kernels/hadamard_test.cc"},
      {"kernels/formats/int4_rows.cc", "tests/kernels/int4_rows_test.cc"},
      {"kernels/formats/iq_grids.cc", "tests/kernels/iq_grids_test.cc"},
      {"kernels/formats/key_value_codes.cc", "tests/kernels/key_value_codes_test.cc"},
      {"kernels/reference/quantize_row.cc", "tests/kernels/quantize_row_test.cc"},
      {"kernels/reference/reference_kernels.cc", "tests/kernels/reference_kernels_test.cc"},
      {"kernels/reference/reference_rows.cc", "tests/kernels/rows_test.cc"},
      {"launcher/balance_command.cc", "tests/end_to_end/failover_test.py"},
      {"launcher/bench_command.cc", "tests/end_to_end/command_line.py"},
      {"launcher/chat_command.cc", "tests/end_to_end/command_line.py"},
      {"launcher/endpoint.cc", "tests/end_to_end/replica.py"},
      {"launcher/fleet_commands.cc", "tests/end_to_end/fleet_test.py"},
      {"launcher/opened_fleet.cc", "tests/end_to_end/plan_test.py"},
      {"launcher/fleet_plan.cc", "tests/end_to_end/plan_test.py"},
      {"launcher/fleet_messages.cc", "tests/launcher/fleet_view_test.cc"},
      {"launcher/fleet_runner.cc", "tests/end_to_end/fleet_test.py"},
      {"launcher/fleet_service.cc", "tests/end_to_end/fleet_test.py"},
      {"launcher/check_command.cc", "tests/end_to_end/plan_test.py"},
      {"launcher/generate_command.cc", "tests/end_to_end/smollm2_test.py"},
      {"launcher/generation.cc", "tests/end_to_end/smollm2_test.py"},
      {"launcher/grpc_absent.cc", "tests/end_to_end/command_line.py"},
      {"launcher/inspect_command.cc", "tests/end_to_end/blocks_test.py"},
      {"launcher/job_start.cc", "tests/end_to_end/faults_test.py"},
      {"launcher/layer_times.cc", "tests/end_to_end/plan_test.py"},
      {"launcher/load_progress.cc", "tests/end_to_end/command_line.py"},
      {"launcher/load_watch.cc", "tests/end_to_end/fleet_test.py"},
      {"launcher/local_model.cc", "tests/end_to_end/exactness_test.py"},
      {"launcher/model_facade.cc", "tests/end_to_end/failover_test.py"},
      {"launcher/observe_options.cc", "tests/end_to_end/observe_test.py"},
      {"launcher/plan_command.cc", "tests/end_to_end/plan_test.py"},
      {"launcher/prompts.cc", "tests/end_to_end/smollm2_test.py"},
      {"launcher/render_command.cc", "tests/end_to_end/text_test.py"},
      {"launcher/replica_options.cc", "tests/end_to_end/bad_input_test.py"},
      {"launcher/replica_plan.cc", "tests/end_to_end/plan_test.py"},
      {"launcher/score_command.cc", "tests/end_to_end/smollm2_test.py"},
      {"launcher/serve_command.cc", "tests/end_to_end/faults_test.py"},
      {"launcher/serve_flags.cc", "tests/end_to_end/fleet_test.py"},
      {"launcher/serving.cc", "tests/end_to_end/faults_test.py"},
      {"launcher/sweeper.cc", "tests/launcher/processes_test.cc"},
      {"launcher/synthesize_command.cc", "tests/end_to_end/synthesize_test.py"},
      {"launcher/text_commands.cc", "tests/end_to_end/text_test.py"},
      {"launcher/trireme_main.cc", "tests/end_to_end/command_line.py"},
      {"launcher/up_command.cc", "tests/end_to_end/fleet_test.py"},
      {"launcher/version.cc", "tests/end_to_end/command_line.py"},
      {"launcher/why_command.cc", "tests/end_to_end/observe_test.py"},
      {"runtime/balance/attempt_control.cc", "tests/runtime/balance/balancer_core_test.cc"},
      {"runtime/balance/attempt_tap.cc", "tests/runtime/balance/forwarding_controller_test.cc"},
      {"runtime/balance/forwarder_actions.cc",
       "tests/runtime/balance/forwarding_controller_test.cc"},
      {"runtime/balance/lease_call.cc", "tests/runtime/balance/replica_link_test.cc"},
      {"launcher/weight_parts.cc", "tests/end_to_end/plan_test.py"},
      {"runtime/comm/mpi_communicator.cc", "tests/distributed/mpi_communicator_test.cc"},
      {"runtime/engine/model_text.cc", "tests/runtime/engine/local_replica_test.cc"},
      {"runtime/engine/process_replica.cc", "tests/end_to_end/faults_test.py"},
      {"runtime/engine/rank.cc", "tests/runtime/engine/local_replica_test.cc"},
      {"runtime/engine/replica.cc", "tests/runtime/engine/local_replica_test.cc"},
      {"runtime/engine/worker.cc", "tests/runtime/engine/local_replica_test.cc"},
      {"runtime/model/activations.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/model/attention.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/model/experts.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/model/feed_forward.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/model/latent_attention.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/model/layer.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/model/linear.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/model/norm.cc", "tests/runtime/model/stage_test.cc"},
      {"runtime/serve/lease_call.cc", "tests/runtime/serve/engine_service_test.cc"},
      {"runtime/serve/resume_board.cc", "tests/runtime/serve/stream_session_test.cc"},
      {"runtime/serve/stream_events.cc", "tests/runtime/serve/stream_session_test.cc"},
      {"runtime/serve/validate_delivery.cc", "tests/runtime/serve/validate_request_test.cc"},
      {"runtime/spec/family_parts.cc", "tests/runtime/spec/dense_families_test.cc"},
      {"runtime/spec/keys.cc", "tests/runtime/spec/families_test.cc"},
      {"runtime/spec/model_spec.cc", "tests/runtime/spec/families_test.cc"},
      {"runtime/spec/read_rope.cc", "tests/runtime/spec/dense_families_test.cc"},
      {"runtime/text/pattern_class.cc", "tests/runtime/text/pattern_syntax_test.cc"},
      {"runtime/text/piece_model.cc", "tests/runtime/text/pair_model_test.cc"},
      {"runtime/text/piece_normalizer.cc", "tests/runtime/text/piece_file_pipeline_test.cc"},
      {"runtime/text/text_pipeline.cc", "tests/runtime/text/json_pipeline_test.cc"},
      {"runtime/text/unigram_model.cc", "tests/runtime/text/unigram_trie_test.cc"},
      {"runtime/text/vocabulary_pipeline.cc", "tests/runtime/text/tokenizer_test.cc"},
      {"topology/key_values.cc", "tests/topology/cluster_file_test.cc"},
      {"topology/replica_keys.cc", "tests/topology/cluster_file_test.cc"},
      {"runtime/weights/gguf_checkpoint.cc", "tests/runtime/weights/checkpoint_test.cc"},
      {"runtime/weights/quantized/float_parts.cc", "tests/runtime/weights/quantized/fp8_test.cc"},
      {"runtime/weights/quantized/groups.cc", "tests/runtime/weights/quantized/gptq_test.cc"},
      {"runtime/weights/quantized/module_tensors.cc",
       "tests/runtime/weights/quantized/gptq_test.cc"},
      {"runtime/weights/slice_rows.cc", "tests/runtime/weights/load_shard_test.cc"},
      {"runtime/weights/tensor_values.cc", "tests/end_to_end/quantized_test.py"},
  };
  return *elsewhere;
}

std::string FolderOf(const std::string& path) {
  for (const auto& [folder, includes] : AllowedIncludes()) {
    if (path.rfind(folder + "/", 0) == 0) {
      return folder;
    }
  }
  return "";
}

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsCode(const fs::path& path) {
  const std::string extension = path.extension();
  return extension == ".h" || extension == ".cc" || extension == ".inc";
}

// Paths from the root of the repository, which is the working directory of tests.
std::vector<std::string> CodeFiles(const std::vector<std::string>& roots) {
  std::vector<std::string> files;
  for (const std::string& root : roots) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file() && IsCode(entry.path())) {
        files.push_back(entry.path().generic_string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> ProductFiles() {
  return CodeFiles({"kernels", "topology", "runtime", "launcher"});
}

std::vector<std::string> QuotedIncludes(const std::string& text) {
  static const std::regex* const pattern = new std::regex("(^|\n)#include \"([^\"]+)\"");
  std::vector<std::string> includes;
  for (std::sregex_iterator match(text.begin(), text.end(), *pattern);
       match != std::sregex_iterator(); ++match) {
    includes.push_back((*match)[2]);
  }
  return includes;
}

TEST(TidyTest, FoldersIncludeOnlyFoldersAboveThem) {
  for (const std::string& file : ProductFiles()) {
    const std::string folder = FolderOf(file);
    for (const std::string& include : QuotedIncludes(ReadText(file))) {
      const std::string included = FolderOf(include);
      if (included.empty() || included == folder) {
        continue;
      }
      EXPECT_TRUE(AllowedIncludes().at(folder).count(included) == 1)
          << file << " includes " << include;
    }
  }
}

TEST(TidyTest, SeamsKeepTheirLibrariesOutOfHeaders) {
  const std::vector<std::string> heavy = {"#include <mpi.h>", "grpcpp/", "gmock/gmock.h",
                                          ".pb.h\""};
  for (const std::string& file : ProductFiles()) {
    if (fs::path(file).extension() != ".h" || file.rfind("runtime/serve/", 0) == 0) {
      continue;
    }
    const std::string text = ReadText(file);
    for (const std::string& library : heavy) {
      EXPECT_EQ(text.find(library), std::string::npos) << file << " includes " << library;
    }
  }
  for (const std::string& file : ProductFiles()) {
    const bool has_mpi = ReadText(file).find("#include <mpi.h>") != std::string::npos;
    EXPECT_EQ(has_mpi, file == "runtime/comm/mpi_communicator.cc") << file;
  }
}

TEST(TidyTest, EverySourceFileHasATest) {
  // Tested by another test than the one of their own name.
  const std::map<std::string, std::string>& tested_by = TestedElsewhere();
  std::set<std::string> unused;
  for (const auto& [source, test] : tested_by) {
    unused.insert(source);
  }
  for (const std::string& file : ProductFiles()) {
    if (fs::path(file).extension() != ".cc") {
      continue;
    }
    const std::string stem = file.substr(0, file.size() - 3);
    const auto elsewhere = tested_by.find(file);
    unused.erase(file);
    const std::string test =
        elsewhere != tested_by.end() ? elsewhere->second : "tests/" + stem + "_test.cc";
    EXPECT_TRUE(fs::exists(test)) << file << " has no test: wanted " << test;
  }
  for (const std::string& source : unused) {
    ADD_FAILURE() << source << " is named as tested elsewhere, but does not exist";
  }
}

// Identifiers of a text, without what stands between double quotes: keys of a format and messages
// are somebody else's words.
std::set<std::string> Identifiers(const std::string& text) {
  std::set<std::string> identifiers;
  std::string word;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) {
      in_string = !in_string;
    }
    if (!in_string && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')) {
      word += c;
      continue;
    }
    if (!word.empty() && word.back() == '_') {
      word.pop_back();  // a member's name
    }
    identifiers.insert(word);
    word.clear();
  }
  return identifiers;
}

TEST(TidyTest, WordsHaveOneMeaningAndNoAlias) {
  // The left word is not used; docs/style.md says which one is.
  const std::vector<std::string> banned = {
      "n_heads",    "num_heads",  "kv_heads",   "n_layers", "num_layers", "hidden_size",
      "vocab_size", "embed_dim",  "d_model",    "seq_len",  "seqlen",     "ctx",
      "n_tokens",   "num_tokens", "page_table", "kv_page",  "microbatch", "head_size",
      "n_embd",     "ffn_dim",    "num_blocks", "n_blocks", "max_len",
  };
  for (const std::string& file : ProductFiles()) {
    const std::set<std::string> identifiers = Identifiers(ReadText(file));
    for (const std::string& word : banned) {
      EXPECT_EQ(identifiers.count(word), 0u) << file << " says " << word;
    }
  }
}

TEST(TidyTest, FilesStayReadable) {
  constexpr int kLinesMax = 500;
  for (const std::string& file : ProductFiles()) {
    const std::string text = ReadText(file);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), kLinesMax)
        << file << " holds more than one noun";
  }
}

}  // namespace
}  // namespace trireme

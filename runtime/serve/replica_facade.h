// What the service needs of a replica, as plain values and pointers: the door knows nothing of
// ranks, models or devices. Also the bounds that every request is held against.
#ifndef TRIREME_RUNTIME_SERVE_REPLICA_FACADE_H_
#define TRIREME_RUNTIME_SERVE_REPLICA_FACADE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/engine/controller.h"
#include "runtime/sample/sampling_options.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/tokenizer.h"

namespace trireme::serve {

// Each is a border check: the value itself is accepted, one more is refused by name.
struct RequestLimits {
  int64_t request_bytes_max = int64_t{16} << 20;
  int64_t prompt_bytes_max = 0;  // of text; 0: context length times the longest token, which no
                                 // prompt that fits can exceed
  int64_t messages_max = 1024;
  int64_t tools_max = 128;
  int64_t tools_bytes_max = int64_t{1} << 20;
  int64_t choices_max = 8;
  int64_t stop_strings_max = 16;
  int64_t stop_string_bytes_max = 256;
  int64_t stop_token_ids_max = 64;
  int64_t request_id_bytes_max = 64;
  int64_t trace_tags_max = 8;
  int64_t json_depth_max = 64;  // of tools and tool arguments: they are walked recursively
};

struct ModelInfo {
  std::string id;  // the name that clients use
  std::string family;
  int64_t context_length = 0;   // positions of one sequence
  int64_t vocabulary_size = 0;  // token ids are [0, vocabulary_size)
  std::optional<int32_t> bos_token_id;
  std::vector<int32_t> eos_token_ids;
  std::string bos_token;  // their texts, for the chat template
  std::string eos_token;
  std::string template_hash;
  std::string fingerprint;  // of the arithmetic: equal fingerprints give equal tokens
  sample::SamplingOptions default_sampling = {.temperature = 1.0f};  // for unset fields
  std::vector<std::string> template_variables;                       // names that requests may set
  RequestLimits limits;
  bool is_balanced = false;  // a balancer: priorities and disruption policies are honoured
};

// One rank as a status page shows it.
struct RankSnapshot {
  int32_t rank = 0;
  std::string host;
  int64_t process_id = 0;
  uint64_t step = 0;  // finished by its compute thread
  absl::Duration heartbeat_age;
  std::string phase;
  int32_t stage = 0;
  int32_t tensor_rank = 0;
};

// How many tokens each expert of a layer has served since the start.
struct ExpertLayerSnapshot {
  int64_t layer = 0;
  std::vector<uint64_t> tokens;  // [experts]
  double busiest_ratio = 0;      // the most of them over the mean; 0 before the first
};

struct StatusSnapshot {
  std::string version;       // of the program
  std::string phase_detail;  // the phase of the start or of the end, and who is missing
  uint64_t epoch = 0;
  bool fault_injection = false;  // this process fails where a test says so
  std::vector<RankSnapshot> ranks;
  std::vector<ExpertLayerSnapshot> expert_layers;  // of a model without experts empty
};

// A replica that is ready to serve. Everything pointed to must outlive the server.
struct ReplicaFacade {
  engine::Controller* controller = nullptr;
  const text::Tokenizer* tokenizer = nullptr;         // null: token ids only
  const text::ChatTemplate* chat_template = nullptr;  // null: no chat input
  ModelInfo model;
  uint64_t epoch = 0;  // of this start, greater than that of earlier ones; 0: the door makes one
  int64_t queued_requests_max = 1024;  // the controller's, for load reports
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_REPLICA_FACADE_H_

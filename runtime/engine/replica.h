// A running replica as its controller's process sees it, whatever its ranks are: threads of this
// process (LocalReplica) or processes under mpirun or srun (ProcessReplica).
#ifndef TRIREME_RUNTIME_ENGINE_REPLICA_H_
#define TRIREME_RUNTIME_ENGINE_REPLICA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/comm/rank_place.h"
#include "runtime/engine/controller.h"
#include "runtime/engine/model_text.h"
#include "runtime/engine/rank.h"
#include "runtime/model/expert_load.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::engine {

// What is the same on every rank.
struct ReplicaInfo {
  spec::ModelSpec model;
  StepLimits limits;
  uint64_t fingerprint = 0;             // of the checkpoint
  std::string table;                    // kernel table
  std::vector<RankBytes> rank_bytes;    // [ranks]
  std::vector<RankWork> rank_work;      // [ranks]
  std::vector<comm::RankPlace> places;  // [ranks]; empty when they are threads
};

enum class RankPhase : uint8_t {
  kIdle,       // has finished every step it was given
  kComputing,  // has a step
  kWaiting,    // has a step, and waits for another rank to go on with it
  kSilent,     // no heartbeat for a second
  kGone,       // has ended, or counts as lost
};
absl::string_view RankPhaseName(RankPhase phase);

// One rank as it was when it was last heard.
struct RankStatus {
  int rank = 0;
  int stage = 0;
  int tensor_rank = 0;
  std::string host;
  int64_t process_id = 0;
  uint64_t step = 0;  // the last one it finished
  absl::Duration heartbeat_age;
  RankPhase phase = RankPhase::kIdle;
};

class Replica {
 public:
  // Ends all streams (CANCELLED) and all ranks.
  virtual ~Replica() = default;

  virtual Controller& controller() = 0;
  virtual const ModelText& text() const = 0;
  virtual const ReplicaInfo& info() const = 0;

  // [ranks]. Any thread; does not block.
  virtual std::vector<RankStatus> RankStatuses() const = 0;

  // Of all layers that have experts; what other processes have counted is some seconds old. Any
  // thread; does not block.
  virtual std::vector<model::ExpertLayerLoad> ExpertLoads() const = 0;
};

// From the GGUF file itself, or from the tokenizer files beside the weights; none of these means
// token ids only. A vocabulary that cannot be used is the file's fault (DataLoss), not the
// options'.
absl::StatusOr<ModelText> ReadReplicaText(const weights::Checkpoint& checkpoint);

// Where the tokenizer files beside the weights lie; of a GGUF file the text is its own.
std::string TextFolderOf(const weights::Checkpoint& checkpoint);

}  // namespace trireme::engine

#endif  // TRIREME_RUNTIME_ENGINE_REPLICA_H_

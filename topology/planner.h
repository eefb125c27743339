// What a replica will need and do, before anything is loaded: KV capacity, speed and what limits
// it, whether it fits, and what would fit if it does not. Pure arithmetic over plain numbers; who
// calls it has read the model's header and measured, or was told, the speeds.
//
// Terms: a sequence's positions are kept in whole blocks of tokens; a step is one batch through all
// stages; up to as many steps as there are stages are under way at once.
#ifndef TRIREME_TOPOLOGY_PLANNER_H_
#define TRIREME_TOPOLOGY_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "topology/link_model.h"

namespace trireme::topology {

// ---- memory

// What one rank takes, exactly.
struct RankMemory {
  int64_t weight_bytes = 0;
  int64_t kv_bytes = 0;
  int64_t workspace_bytes = 0;

  int64_t total_bytes() const { return weight_bytes + kv_bytes + workspace_bytes; }
};

// Blocks of KV that a rank holds in `kv_bytes`; all ranks of a replica hold as many as the
// smallest.
int64_t BlocksThatFit(int64_t kv_bytes, int64_t block_bytes);

struct KvCapacity {
  int64_t tokens = 0;     // positions in all
  int64_t sequences = 0;  // of the stated length, in whole blocks
};
KvCapacity CapacityOf(int64_t blocks, int64_t block_tokens, int64_t sequence_tokens);

// All ranks that one host holds, of all replicas.
struct HostDemand {
  std::string host;
  int64_t available_bytes = 0;
  int64_t weight_bytes = 0;
  int64_t kv_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t kv_bytes_per_token = 0;  // of the ranks here together
  double bits_per_weight = 0;      // of the weights as they are

  int64_t total_bytes() const { return weight_bytes + kv_bytes + workspace_bytes; }
};

// Empty when it fits; else the numbers, and what would fit: fewer bits a weight, a shorter context,
// more hosts.
std::string DescribeMisfit(const HostDemand& demand);

// ---- speed

// One stage's speed, measured or from stated bandwidths.
struct StageSpeed {
  double layer_units = 0;  // its layers; one that reads more bytes than the mean counts more
  double decode_layer_seconds = 0;   // one layer, one token of one sequence
  double output_seconds = 0;         // output matrix for one token; 0 but on the last stage
  double prefill_layer_seconds = 0;  // one layer, one token of a long chunk
  double decode_bytes = 0;           // weights that one token reads here, all tensor ranks
  double kv_bytes_per_token = 0;     // of this stage's layers, all tensor ranks
  double stream_bytes_per_second = 0;
};

struct SpeedQuestion {
  std::vector<StageSpeed> stages;
  Link link;                    // between stages
  double residual_bytes = 0;    // that one token sends from stage to stage
  double step_seconds = 0;      // controller and sampler, for each step
  int64_t sequences = 1;        // that run at once, for the throughput
  int64_t sequence_tokens = 0;  // mean length of those
};

struct SpeedPrediction {
  double decode_tokens_per_second = 0;      // one sequence alone, short
  double throughput_tokens_per_second = 0;  // all of `sequences` together
  double prefill_tokens_per_second = 0;     // of one long prompt
  std::string decode_limit;                 // what takes the most of a token's time, with its share
};

SpeedPrediction PredictSpeed(const SpeedQuestion& question);

// The speed of a stage on a node whose bandwidth and operations are stated, all layers alike.
struct StatedSpeed {
  double stream_bytes_per_second = 0;
  double operations_per_second = 0;
  int64_t layers = 0;
  int tensor_ranks = 1;
  double layer_bytes = 0;       // weights of one layer
  double output_bytes = 0;      // of the output matrix; 0 but on the last stage
  double layer_operations = 0;  // for one token
  double residual_bytes = 0;    // that one all-reduce of one token adds up
};
StageSpeed SpeedFromStated(const StatedSpeed& stated);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_PLANNER_H_

// What moving bytes between ranks costs, by the simplest model that is right within tens of
// percent: a latency for each message and a rate for its bytes.
#ifndef TRIREME_TOPOLOGY_LINK_MODEL_H_
#define TRIREME_TOPOLOGY_LINK_MODEL_H_

namespace trireme::topology {

struct Link {
  double bytes_per_second = 0;
  double latency_seconds = 0;  // one way, of a small message
};

// Ranks of one host, whose messages are copies through shared memory; ranks on cores of their own.
inline constexpr Link kSharedMemoryLink = {.bytes_per_second = 5e9, .latency_seconds = 2e-6};

double SendSeconds(const Link& link, double bytes);

// Recursive doubling, as comm/ does it: log2(ranks) rounds, all bytes in each. `ranks` is a power
// of two.
double AllReduceSeconds(const Link& link, int ranks, double bytes);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_LINK_MODEL_H_

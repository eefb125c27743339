#include "topology/link_model.h"

namespace trireme::topology {

double SendSeconds(const Link& link, double bytes) {
  return link.latency_seconds + bytes / link.bytes_per_second;
}

double AllReduceSeconds(const Link& link, int ranks, double bytes) {
  double seconds = 0;
  for (int reached = 1; reached < ranks; reached *= 2) {
    seconds += SendSeconds(link, bytes);
  }
  return seconds;
}

}  // namespace trireme::topology

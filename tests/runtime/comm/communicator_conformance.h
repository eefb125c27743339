// What every kind of Communicator must do, as cases that all ranks of a group run together: as
// threads of one test (RunOnThreads) or as processes (tests/distributed).
#ifndef TRIREME_TESTS_RUNTIME_COMM_COMMUNICATOR_CONFORMANCE_H_
#define TRIREME_TESTS_RUNTIME_COMM_COMMUNICATOR_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace trireme::comm {

struct ConformanceCase {
  const char* name;
  int ranks_min;  // groups smaller than this skip the case
  void (*run)(Communicator& communicator);
  bool ends_group;  // the group cannot be used afterwards
};

// Cases that leave the group usable come first.
const std::vector<ConformanceCase>& ConformanceCases();

// Runs `body` for each communicator on a thread of its own and joins them.
void RunOnThreads(std::vector<std::unique_ptr<Communicator>>& group,
                  const std::function<void(Communicator&)>& body);

// Makes the communicators of one new group of `size` ranks, all in this process.
using GroupFactory = std::function<std::vector<std::unique_ptr<Communicator>>(int size)>;

// A kind and a size under test; each case gets a new group.
struct ConformanceParameter {
  const char* kind;
  int size;
  GroupFactory make;
};

class ConformanceTest : public testing::TestWithParam<ConformanceParameter> {
 public:
  static std::string Name(const testing::TestParamInfo<ConformanceParameter>& info);
};

}  // namespace trireme::comm

#endif  // TRIREME_TESTS_RUNTIME_COMM_COMMUNICATOR_CONFORMANCE_H_

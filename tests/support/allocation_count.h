// Counts the calls of operator new, for tests of what must allocate nothing. Linking this replaces
// the operators of the whole program, so such a test is a program of its own.
#ifndef TRIREME_TESTS_SUPPORT_ALLOCATION_COUNT_H_
#define TRIREME_TESTS_SUPPORT_ALLOCATION_COUNT_H_

#include <cstdint>

namespace trireme::testing {

// Calls so far by the thread that asks.
int64_t AllocationsOfThisThread();

// Calls so far by all threads but those that were excused.
int64_t AllocationsOfAllThreads();

// What this thread allocates from now on is not held against the others: for readers of results.
void ExcuseThisThread();

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_ALLOCATION_COUNT_H_

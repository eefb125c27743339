// Counts the calls of operator new and the bytes that they hold, for tests of what must allocate
// nothing or not too much. Linking this replaces the operators of the whole program, so such a test
// is a program of its own.
#ifndef TRIREME_TESTS_SUPPORT_ALLOCATION_COUNT_H_
#define TRIREME_TESTS_SUPPORT_ALLOCATION_COUNT_H_

#include <cstdint>

namespace trireme::testing {

// Calls so far by the thread that asks.
int64_t AllocationsOfThisThread();

// Bytes that the thread that asks has allocated and not freed, with malloc's own; what others free
// for it still counts.
int64_t LiveBytesOfThisThread();

// The most that LiveBytesOfThisThread() was since the call of RestartPeakOfThisThread().
int64_t PeakBytesOfThisThread();
void RestartPeakOfThisThread();

// The same of all threads together.
int64_t LiveBytesOfAllThreads();
int64_t PeakBytesOfAllThreads();
void RestartPeakOfAllThreads();

// Calls so far by all threads but those that were excused.
int64_t AllocationsOfAllThreads();

// What this thread allocates from now on is not held against the others: for readers of results.
void ExcuseThisThread();

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_ALLOCATION_COUNT_H_

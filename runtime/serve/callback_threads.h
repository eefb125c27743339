// The threads that run the reactions of gRPC's callback API, of servers and clients alike.
//
// gRPC 1.51 has max(2, cores / 2) of them for a process, at most 16, all on one queue. Two threads
// on few cores hand each event to each other: one polls, wakes the other, and only then reacts,
// which costs a chunk through a balancer five futex calls and a third of its time
// (docs/benchmarks/balancer.md).
#ifndef TRIREME_RUNTIME_SERVE_CALLBACK_THREADS_H_
#define TRIREME_RUNTIME_SERVE_CALLBACK_THREADS_H_

namespace trireme::serve {

// Starts gRPC's callback threads and keeps them for the life of the process: 1.51 ends them with
// the last channel that has used them, and aborts when that happens on one of them. Where there are
// two, one rests from then on. Call it before the first server or channel; later calls do nothing.
// Any thread.
//
// So no reaction may wait for another one.
void KeepCallbackThreads();

// How many of them react, on this machine.
int CallbackThreadCount();

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_CALLBACK_THREADS_H_

// One pause of a spinning thread: tells the core that it waits, so that its sibling runs on.
#ifndef TRIREME_RUNTIME_BASE_CPU_RELAX_H_
#define TRIREME_RUNTIME_BASE_CPU_RELAX_H_

namespace trireme {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_CPU_RELAX_H_

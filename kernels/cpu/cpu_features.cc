#include "kernels/cpu/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <cerrno>

namespace trireme::kernels::cpu {

#if defined(__x86_64__)

namespace {

// Bits as the processor manuals number them.
constexpr uint32_t Bit(int index) { return 1U << index; }
constexpr uint32_t kLeaf1Ecx = Bit(12) | Bit(27) | Bit(28) | Bit(29);  // FMA, OSXSAVE, AVX, F16C
constexpr uint32_t kLeaf7EbxAvx2 = Bit(5);
constexpr uint32_t kLeaf7EbxAvx512 = Bit(16) | Bit(17) | Bit(30) | Bit(31);  // F, DQ, BW, VL
constexpr uint32_t kLeaf7EcxVnni = Bit(11);
constexpr uint32_t kLeaf7EdxAmx = Bit(22) | Bit(23) | Bit(24);  // AMX-BF16, AVX512-FP16, AMX-TILE
constexpr uint32_t kLeaf7OneEaxBf16 = Bit(5);
constexpr uint32_t kSavedYmm = Bit(1) | Bit(2);
constexpr uint32_t kSavedZmm = kSavedYmm | Bit(5) | Bit(6) | Bit(7);
constexpr uint32_t kSavedTiles = Bit(17) | Bit(18);

constexpr bool HasAll(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

uint32_t SavedRegisters() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

CpuFeatures DetectCpuFeatures() {
  CpuFeatures features;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid_count(1, 0, &a, &b, &c, &d) == 0 || !HasAll(c, kLeaf1Ecx)) {
    return features;
  }
  const uint32_t saved = SavedRegisters();  // OSXSAVE allows the instruction
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) {
    return features;
  }
  features.has_avx2 = HasAll(saved, kSavedYmm) && HasAll(b, kLeaf7EbxAvx2);
  features.has_avx512 = features.has_avx2 && HasAll(saved, kSavedZmm) &&
                        HasAll(b, kLeaf7EbxAvx512) && HasAll(c, kLeaf7EcxVnni);
  features.has_amx = features.has_avx512 && HasAll(saved, kSavedTiles) && HasAll(d, kLeaf7EdxAmx);
  // Leaf 7 itself says in eax how many subleaves it has.
  features.has_avx512_bf16 = features.has_avx512 && a >= 1 &&
                             __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
                             HasAll(a, kLeaf7OneEaxBf16);
  return features;
}

int RequestTilePermission() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM, Linux 5.16
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
}

#elif defined(__aarch64__)

CpuFeatures DetectCpuFeatures() {
  constexpr unsigned long kDotProduct =
      HWCAP_ASIMDDP | HWCAP_ATOMICS | HWCAP_ASIMDRDM | HWCAP_CRC32;
  CpuFeatures features;
  features.has_neon_dot = (getauxval(AT_HWCAP) & kDotProduct) == kDotProduct;
  return features;
}
int RequestTilePermission() { return ENOSYS; }

#else

CpuFeatures DetectCpuFeatures() { return {}; }
int RequestTilePermission() { return ENOSYS; }

#endif

}  // namespace trireme::kernels::cpu

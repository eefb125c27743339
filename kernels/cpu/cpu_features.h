// What this processor and its operating system can run, asked once by whoever chooses a table.
#ifndef TRIREME_KERNELS_CPU_CPU_FEATURES_H_
#define TRIREME_KERNELS_CPU_CPU_FEATURES_H_

namespace trireme::kernels::cpu {

struct CpuFeatures {
  bool has_avx2 = false;         // AVX2, FMA and F16C, with the registers saved by the system
  bool has_avx512 = false;       // AVX-512 F, BW, DQ, VL and VNNI, likewise; implies has_avx2
  bool has_avx512_bf16 = false;  // vdpbf16ps; implies has_avx512
  // AMX tiles of bfloat16, and AVX-512 FP16, likewise; implies has_avx512. The system saves tiles
  // for processes only that asked for it.
  bool has_amx = false;
  // 64-bit ARM: the dot product of bytes (FEAT_DotProd), with what every ARMv8.1 has.
  bool has_neon_dot = false;
};

// What another architecture has is false.
CpuFeatures DetectCpuFeatures();

// Asks the system for this process's use of tiles, where has_amx holds: for all its threads,
// present and to come. 0, or the errno of the refusal.
int RequestTilePermission();

}  // namespace trireme::kernels::cpu

#endif  // TRIREME_KERNELS_CPU_CPU_FEATURES_H_

// The limits that speed is judged by, measured on this machine at the moment of the call: reading
// memory, 8-bit and bfloat16 dot products and float32 fused multiply-adds, with the widest
// instructions that the tables here use. Takes about a tenth of a second and 256 MiB of memory for
// its duration.
#ifndef TRIREME_KERNELS_CPU_MACHINE_LIMITS_H_
#define TRIREME_KERNELS_CPU_MACHINE_LIMITS_H_

#include "kernels/formats/weight_format.h"

namespace trireme::kernels::cpu {

struct MachineLimits {
  double stream_bytes_per_second = 0;      // reading memory that no cache holds
  double byte_operations_per_second = 0;   // 8-bit dot products; a multiply and an add are two
  double float_operations_per_second = 0;  // float32 fused multiply-adds, two operations each
  // Dot products of pairs of bfloat16 numbers, four operations each, where the processor has an
  // instruction for them; else the rate of fused multiply-adds, which take their place.
  double bfloat16_operations_per_second = 0;
  double clock_hz = 0;  // of one core that does this work

  // Of products with such activations.
  double OperationsPerSecond(ActivationKind kind) const {
    switch (kind) {
      case ActivationKind::kFloat32:
        return float_operations_per_second;
      case ActivationKind::kBFloat16:
        return bfloat16_operations_per_second;
      case ActivationKind::kInt8:
        return byte_operations_per_second;
    }
    return float_operations_per_second;
  }
};

// With `threads` >= 1 threads, the caller among them. The best of `repeats` runs of each.
MachineLimits MeasureMachineLimits(int threads, int repeats = 5);

}  // namespace trireme::kernels::cpu

#endif  // TRIREME_KERNELS_CPU_MACHINE_LIMITS_H_

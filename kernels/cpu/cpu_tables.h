// The tables over 16 lanes. Reading one is safe everywhere; calling the functions of those for an
// instruction set only where cpu_features.h says so. kernel_table.cc chooses.
#ifndef TRIREME_KERNELS_CPU_CPU_TABLES_H_
#define TRIREME_KERNELS_CPU_CPU_TABLES_H_

#include "kernels/kernel_table.h"

namespace trireme::kernels::avx2 {
extern const KernelTable kTable;
}
namespace trireme::kernels::avx512 {
extern const KernelTable kTable;
}
namespace trireme::kernels::avx512bf16 {
// That of avx512 with the instruction for pairs of bfloat16 numbers.
const KernelTable& Table();
}  // namespace trireme::kernels::avx512bf16
namespace trireme::kernels::amx {
// That of avx512 with the tile unit for products of many tokens.
const KernelTable& Table();
}  // namespace trireme::kernels::amx
namespace trireme::kernels::neon {
extern const KernelTable kTable;
}
namespace trireme::kernels::portable {
extern const KernelTable kTable;
}

#endif  // TRIREME_KERNELS_CPU_CPU_TABLES_H_

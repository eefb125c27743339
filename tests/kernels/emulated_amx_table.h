// The code of the table "amx" over emulated tiles: it packs, unpacks and adds as on a processor
// with a tile unit, and so pins those layouts on every machine. All products go through tiles, of
// one token too. Slow; for checks only.
#ifndef TRIREME_TESTS_KERNELS_EMULATED_AMX_TABLE_H_
#define TRIREME_TESTS_KERNELS_EMULATED_AMX_TABLE_H_

#include "kernels/kernel_table.h"

namespace trireme::kernels::check {

const KernelTable& EmulatedAmxTable();

}  // namespace trireme::kernels::check

#endif  // TRIREME_TESTS_KERNELS_EMULATED_AMX_TABLE_H_

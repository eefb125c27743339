// Table "reference": the definition of every op, in the plainest loops. Runs on every machine.
#ifndef TRIREME_KERNELS_REFERENCE_REFERENCE_KERNELS_H_
#define TRIREME_KERNELS_REFERENCE_REFERENCE_KERNELS_H_

#include "kernels/kernel_table.h"

namespace trireme::kernels::reference {

const KernelTable& ReferenceTable();

}  // namespace trireme::kernels::reference

#endif  // TRIREME_KERNELS_REFERENCE_REFERENCE_KERNELS_H_

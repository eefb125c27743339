#include "kernels/kernel_table.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/cpu_tables.h"
#include "kernels/reference/reference_kernels.h"

namespace trireme::kernels {
namespace {

struct Tables {
  std::array<const KernelTable*, 6> tables{};
  int count = 0;
  std::string missing;
};

Tables FindRunnableTables() {
  Tables result;
  const auto append = [&result](const KernelTable* table) {
    result.tables[static_cast<size_t>(result.count++)] = table;
  };
#ifdef TRIREME_X86_TABLES
  const cpu::CpuFeatures features = cpu::DetectCpuFeatures();
  if (features.has_amx) {
    const int refusal = cpu::RequestTilePermission();
    if (refusal == 0) {
      append(&amx::Table());
    } else {
      result.missing = std::string("amx: the system refuses tile registers to this process (") +
                       std::strerror(refusal) + ")";
    }
  }
  // Processors with tiles take half the fused multiply-adds' rate or less for vdpbf16ps, and table
  // amx does without.
  if (features.has_avx512_bf16) {
    append(&avx512bf16::Table());
  }
  if (features.has_avx512) {
    append(&avx512::kTable);
  }
  if (features.has_avx2) {
    append(&avx2::kTable);
  }
#elif defined(__aarch64__)
  if (cpu::DetectCpuFeatures().has_neon_dot) {
    append(&neon::kTable);
  }
#endif
  append(&portable::kTable);
  append(&reference::ReferenceTable());
  return result;
}

}  // namespace

KernelTableList RunnableKernelTables() {
  static const Tables kTables = FindRunnableTables();
  return {kTables.tables.data(), kTables.count, kTables.missing.c_str()};
}

const KernelTable* FindKernelTable(const char* name) {
  const KernelTableList list = RunnableKernelTables();
  const std::string_view wanted = name == nullptr ? "" : name;
  for (int i = 0; i < list.count; ++i) {
    if (wanted.empty() || wanted == list.tables[i]->name) {
      return list.tables[i];
    }
  }
  return nullptr;
}

}  // namespace trireme::kernels

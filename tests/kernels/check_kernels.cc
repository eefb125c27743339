// Runs every entry of every table that this machine can run against table "reference", to the bit,
// and prints "N passed, N failed". Needs no test library, so it also runs on a bare machine.
//   check_kernels                       all checks of all tables
//   check_kernels FAMILY                the checks of matmul, rows, shared_rows or attention
//   check_kernels --table TABLE [FAMILY]
//                                       those of one table
//   check_kernels --benchmark [TABLE [matmul]]
//                                       times and shares of this machine's limits, 1 thread and all
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/kernels/check_harness.h"
#include "tests/kernels/emulated_amx_table.h"

namespace trireme::kernels::check {
namespace {

constexpr int64_t kSharedScratchBytes = 1 << 20;

// `only_table` and `only_family` are null for all.
int RunChecks(const char* only_table, const char* only_family) {
  const KernelTableList list = RunnableKernelTables();
  const KernelTable& reference = *FindKernelTable("reference");
  std::vector<const KernelTable*> tables(list.tables, list.tables + list.count);
  tables.push_back(&EmulatedAmxTable());
  if (only_table != nullptr) {
    std::erase_if(tables, [only_table](const KernelTable* table) {
      return std::strcmp(table->name, only_table) != 0;
    });
  }
  int64_t passed = 0;
  int64_t failed = 0;
  for (const KernelTable* table : tables) {
    // Three threads on any machine: more workers than cores must not matter.
    TestExecution execution(3, kSharedScratchBytes);
    TestExecution reference_execution(1, kSharedScratchBytes);
    Checker checker{*table, reference, execution, reference_execution};
    const struct {
      const char* name;
      void (*check)(Checker& checker);
    } kFamilies[] = {{"matmul", CheckMatmul},
                     {"rows", CheckRows},
                     {"shared_rows", CheckSharedRows},
                     {"attention", CheckAttention}};
    for (const auto& family : kFamilies) {
      if (only_family == nullptr || std::strcmp(only_family, family.name) == 0) {
        family.check(checker);
      }
    }
    std::printf("table %s: %lld passed, %lld failed\n", checker.table.name,
                static_cast<long long>(checker.passed), static_cast<long long>(checker.failed));
    passed += checker.passed;
    failed += checker.failed;
  }
  std::printf("AMX %s%s\n", FindKernelTable("amx") != nullptr ? "ran" : "not run: ",
              FindKernelTable("amx") != nullptr ? ""
              : *list.missing != '\0'           ? list.missing
                                                : "this processor has no tiles");
  std::printf("%lld passed, %lld failed\n", static_cast<long long>(passed),
              static_cast<long long>(failed));
  if (passed + failed == 0) {
    std::printf("No check ran: this machine runs no table '%s', or no family is named '%s'.\n",
                only_table == nullptr ? "" : only_table, only_family == nullptr ? "" : only_family);
    return 2;
  }
  return failed == 0 ? 0 : 1;
}

int RunBenchmarks(const char* table_name, bool only_matmul) {
  const KernelTable* table = FindKernelTable(table_name);
  if (table == nullptr) {
    std::printf("This machine runs no kernel table named '%s'.\n", table_name);
    return 2;
  }
  const int all_threads = static_cast<int>(std::thread::hardware_concurrency());
  for (int threads = 1; threads <= all_threads;
       threads = threads == 1 && all_threads > 1 ? all_threads : all_threads + 1) {
    const MachineLimits limits = cpu::MeasureMachineLimits(threads);
    std::printf(
        "table %s, %d thread(s): stream %.1f GB/s, 8-bit dot %.0f GOP/s, bfloat16 %.0f GFLOP/s, "
        "float "
        "%.0f GFLOP/s\n",
        table->name, threads, limits.stream_bytes_per_second * 1e-9,
        limits.byte_operations_per_second * 1e-9, limits.bfloat16_operations_per_second * 1e-9,
        limits.float_operations_per_second * 1e-9);
    BenchmarkMatmul(*table, threads, limits);
    if (only_matmul) {
      continue;
    }
    BenchmarkRows(*table, threads, limits);
    BenchmarkAttention(*table, threads, limits);
  }
  return 0;
}

}  // namespace
}  // namespace trireme::kernels::check

int main(int argument_count, char** arguments) {
  if (argument_count > 1 && std::strcmp(arguments[1], "--benchmark") == 0) {
    return trireme::kernels::check::RunBenchmarks(argument_count > 2 ? arguments[2] : "",
                                                  argument_count > 3);
  }
  const bool is_one_table = argument_count > 2 && std::strcmp(arguments[1], "--table") == 0;
  const int family = is_one_table ? 3 : 1;
  return trireme::kernels::check::RunChecks(is_one_table ? arguments[2] : nullptr,
                                            argument_count > family ? arguments[family] : nullptr);
}

// What the checks of check_kernels share: seeded inputs, buffers with guard bytes and poisoned
// contents, a pool to run on, comparison to the bit, and the count of passed and failed checks.
//
// A check runs one op of `checker.table` and of `checker.reference` on the same inputs and
// compares. One file per op family: check_matmul.cc, check_rows.cc, check_attention.cc.
#ifndef TRIREME_TESTS_KERNELS_CHECK_HARNESS_H_
#define TRIREME_TESTS_KERNELS_CHECK_HARNESS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/machine_limits.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/execution.h"
#include "kernels/kernel_table.h"

namespace trireme::kernels::check {

inline constexpr KeyValueFormat kKeyValueFormats[] = {KeyValueFormat::kF16,  KeyValueFormat::kF32,
                                                      KeyValueFormat::kBF16, KeyValueFormat::kInt8,
                                                      KeyValueFormat::kE4M3, KeyValueFormat::kInt4};

// A small generator (splitmix64): the same numbers everywhere for the same seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits();
  int64_t Below(int64_t limit);          // uniform in [0, limit)
  float Uniform(float low, float high);  // in [low, high)
  float Normal();                        // about standard normal
  void FillNormal(float* x, int64_t count, float scale = 1.0F);

 private:
  uint64_t state_;
};

// `bytes` bytes at a 64-byte border, filled with poison (a NaN in every float), with guard bytes on
// both sides.
class GuardedBytes {
 public:
  explicit GuardedBytes(int64_t bytes);
  std::byte* data() { return data_; }
  int64_t bytes() const { return bytes_; }
  bool GuardsAreIntact() const;

 private:
  std::vector<std::byte> storage_;
  std::byte* data_;
  int64_t bytes_;
};

template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t count)
      : bytes_(count * static_cast<int64_t>(sizeof(T))), count_(count) {}
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  T& operator[](int64_t i) { return data()[i]; }
  int64_t count() const { return count_; }
  bool GuardsAreIntact() const { return bytes_.GuardsAreIntact(); }

 private:
  GuardedBytes bytes_;
  int64_t count_;
};

// A pool with its scratch memory.
class TestExecution {
 public:
  TestExecution(int threads, int64_t shared_scratch_bytes);
  const Execution& get() const { return execution_; }
  // Makes shared scratch at least this large.
  void ReserveShared(int64_t bytes);

 private:
  cpu::ThreadPool pool_;
  std::unique_ptr<GuardedBytes> worker_scratch_;
  std::unique_ptr<GuardedBytes> shared_scratch_;
  Execution execution_;
};

struct Checker {
  const KernelTable& table;      // under test
  const KernelTable& reference;  // the definition
  TestExecution& execution;      // for the table under test
  TestExecution& reference_execution;
  int64_t passed = 0;
  int64_t failed = 0;

  // Counts one check; prints the table's name and `what` when it failed.
  void Expect(bool ok, const std::string& what);
  // The floats have the same bits (any NaN equals any NaN). Prints the first difference.
  void ExpectSameBits(const float* actual, const float* expected, int64_t count,
                      const std::string& what);
  void ExpectSameBytes(const void* actual, const void* expected, int64_t bytes,
                       const std::string& what);
};

// The checks of each op family.
void CheckMatmul(Checker& checker);
void CheckRows(Checker& checker);
void CheckSharedRows(Checker& checker);
void CheckAttention(Checker& checker);

// Seconds of the fastest of several calls of `body`.
template <typename Body>
double FastestSeconds(const Body& body, int repeats);
double NowSeconds();

template <typename Body>
double FastestSeconds(const Body& body, int repeats) {
  double fastest = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double start = NowSeconds();
    body();
    const double seconds = NowSeconds() - start;
    fastest = seconds < fastest ? seconds : fastest;
  }
  return fastest;
}

using cpu::MachineLimits;

// Prints times with their shares of the limits.
void BenchmarkMatmul(const KernelTable& table, int threads, const MachineLimits& limits);
void BenchmarkRows(const KernelTable& table, int threads, const MachineLimits& limits);
void BenchmarkAttention(const KernelTable& table, int threads, const MachineLimits& limits);

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// "op 3 64", for messages.
std::string Describe(const char* op, std::vector<int64_t> extents);

// Both of the same count.
void CopyTo(Guarded<float>& target, Guarded<float>& source);

// A fused quantisation must give what the table's own `quantize` gives for y.
void ExpectQuantized(Checker& checker, float* y, int64_t tokens, int64_t columns,
                     GuardedBytes& quantized, const std::string& what);

}  // namespace trireme::kernels::check

#endif  // TRIREME_TESTS_KERNELS_CHECK_HARNESS_H_

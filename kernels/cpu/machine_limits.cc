#include "kernels/cpu/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trireme::kernels::cpu {
namespace {

constexpr int64_t kStreamBytes = int64_t{256} << 20;
constexpr int64_t kSampleBytes = int64_t{16} << 20;  // a millisecond: short beside a time slice
constexpr int64_t kTaskBytes = int64_t{1} << 20;
constexpr int64_t kLoopIterations = 200'000;
constexpr int kTasksPerThread = 4;

// Runs the same sum of the same data everywhere; the result keeps the compiler from dropping it.
using ReadFunction = uint64_t (*)(const uint64_t* data, int64_t count);
// Runs `iterations` rounds of `operations` operations.
struct ComputeLoop {
  float (*run)(int64_t iterations);
  double operations;
};

uint64_t ReadPlain(const uint64_t* data, int64_t count) {
  uint64_t sums[8] = {};
  for (int64_t i = 0; i < count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      sums[lane] ^= data[i + lane];
    }
  }
  uint64_t sum = 0;
  for (const uint64_t lane : sums) {
    sum ^= lane;
  }
  return sum;
}

float MultiplyPlain(int64_t iterations) {
  float sums[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int64_t i = 0; i < iterations; ++i) {
    for (float& sum : sums) {
      sum = sum * 0.999F + 1e-6F;
    }
  }
  return sums[0] + sums[7];
}

// One dependent multiplication takes three cycles on every x86-64 core of the last decade, and on
// current aarch64 ones.
constexpr double kMultiplyLatencyCycles = 3;
uint64_t MultiplyChain(int64_t iterations) {
  uint64_t x = 0x9E3779B97F4A7C15U;
  for (int64_t i = 0; i < iterations; ++i) {
    x *= 0xD1342543DE82EF95U;
    __asm__ volatile("" : "+r"(x));
  }
  return x;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t ReadAvx2(const uint64_t* data, int64_t count) {
  __m256i a = _mm256_setzero_si256();
  __m256i b = a;
  __m256i c = a;
  __m256i d = a;
  const auto* vectors = reinterpret_cast<const __m256i*>(data);
  for (int64_t i = 0; i < count / 4; i += 4) {
    a = _mm256_xor_si256(a, _mm256_loadu_si256(vectors + i));
    b = _mm256_xor_si256(b, _mm256_loadu_si256(vectors + i + 1));
    c = _mm256_xor_si256(c, _mm256_loadu_si256(vectors + i + 2));
    d = _mm256_xor_si256(d, _mm256_loadu_si256(vectors + i + 3));
  }
  const __m256i all = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
  return static_cast<uint64_t>(_mm256_extract_epi64(all, 0) ^ _mm256_extract_epi64(all, 1) ^
                               _mm256_extract_epi64(all, 2) ^ _mm256_extract_epi64(all, 3));
}

// A function that repeats `operation` on twelve independent sums in registers 0 to 11, as assembly:
// compilers put copies between intrinsics. `clear` zeroes register n.
#define TRIREME_COMPUTE_LOOP(Name, clear, operation)                                           \
  float Name(int64_t iterations) {                                                             \
    __asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,14,15\n" clear                          \
                     "\n"                                                                      \
                     ".endr\n"                                                                 \
                     "1:\n"                                                                    \
                     ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n" operation                            \
                     "\n"                                                                      \
                     ".endr\n"                                                                 \
                     "dec %0\n"                                                                \
                     "jnz 1b\n"                                                                \
                     : "+r"(iterations)                                                        \
                     :                                                                         \
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc");    \
    return static_cast<float>(iterations);                                                     \
  }

TRIREME_COMPUTE_LOOP(MultiplyAvx2, "vpxor %%ymm\\n, %%ymm\\n, %%ymm\\n",
                     "vfmadd231ps %%ymm15, %%ymm14, %%ymm\\n")
TRIREME_COMPUTE_LOOP(DotAvx2, "vpxor %%ymm\\n, %%ymm\\n, %%ymm\\n",
                     "vpmaddubsw %%ymm15, %%ymm14, %%ymm12\n"
                     "vpmaddwd %%ymm14, %%ymm12, %%ymm13\n"
                     "vpaddd %%ymm13, %%ymm\\n, %%ymm\\n")
TRIREME_COMPUTE_LOOP(MultiplyAvx512, "vpxord %%zmm\\n, %%zmm\\n, %%zmm\\n",
                     "vfmadd231ps %%zmm15, %%zmm14, %%zmm\\n")
TRIREME_COMPUTE_LOOP(DotAvx512, "vpxord %%zmm\\n, %%zmm\\n, %%zmm\\n",
                     "vpdpbusd %%zmm15, %%zmm14, %%zmm\\n")
TRIREME_COMPUTE_LOOP(DotBFloat16, "vpxord %%zmm\\n, %%zmm\\n, %%zmm\\n",
                     "vdpbf16ps %%zmm15, %%zmm14, %%zmm\\n")
#undef TRIREME_COMPUTE_LOOP
#endif

struct Loops {
  ReadFunction read = ReadPlain;
  ComputeLoop floats = {MultiplyPlain, 16};
  ComputeLoop bytes = {MultiplyPlain, 16};
  ComputeLoop pairs = {MultiplyPlain, 16};
};

Loops ChooseLoops() {
  Loops loops;
#if defined(__x86_64__)
  const CpuFeatures features = DetectCpuFeatures();
  if (features.has_avx2) {
    loops.read = ReadAvx2;
    loops.floats = {MultiplyAvx2, 12 * 8 * 2};
    loops.bytes = {DotAvx2, 12 * 32 * 2};
  }
  if (features.has_avx512) {
    loops.floats = {MultiplyAvx512, 12 * 16 * 2};
    loops.bytes = {DotAvx512, 12 * 64 * 2};
  }
  loops.pairs = loops.floats;
  if (features.has_avx512_bf16) {
    loops.pairs = {DotBFloat16, 12 * 32 * 2};
  }
#endif
  return loops;
}

template <typename Body>
double FastestSeconds(int repeats, const Body& body) {
  double fastest = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, elapsed.count());
  }
  return fastest;
}

// Where results go that nobody reads.
void Keep(const void* value) { __asm__ volatile("" : : "r"(value) : "memory"); }

double OperationsPerSecond(ThreadPool& pool, int repeats, const ComputeLoop& loop) {
  const int64_t tasks = pool.threads() == 1 ? 1 : pool.threads() * kTasksPerThread;
  const double seconds = FastestSeconds(repeats, [&] {
    pool.ParallelFor(tasks, [&](int64_t /*task_index*/, int /*worker_index*/) {
      const float result = loop.run(kLoopIterations);
      Keep(&result);
    });
  });
  return loop.operations * static_cast<double>(kLoopIterations * tasks) / seconds;
}

// The rate that one sample in ten reaches: a neighbour slows most samples down on a busy machine.
double StreamBytesPerSecond(ThreadPool& pool, int repeats, ReadFunction read) {
  std::vector<uint64_t> data(kStreamBytes / sizeof(uint64_t), 1);
  constexpr int64_t kTaskCount = kTaskBytes / sizeof(uint64_t);
  std::vector<double> seconds;
  for (int64_t sample = 0; sample < repeats * (kStreamBytes / kSampleBytes); ++sample) {
    const uint64_t* first = data.data() + sample * (kSampleBytes / 8) % (kStreamBytes / 8);
    seconds.push_back(FastestSeconds(1, [&] {
      pool.ParallelFor(kSampleBytes / kTaskBytes, [&](int64_t task_index, int /*worker*/) {
        const uint64_t result = read(first + task_index * kTaskCount, kTaskCount);
        Keep(&result);
      });
    }));
  }
  std::sort(seconds.begin(), seconds.end());
  return static_cast<double>(kSampleBytes) / seconds[seconds.size() / 10];
}

}  // namespace

MachineLimits MeasureMachineLimits(int threads, int repeats) {
  ThreadPool pool(threads);
  const Loops loops = ChooseLoops();
  MachineLimits limits;
  limits.byte_operations_per_second = OperationsPerSecond(pool, repeats, loops.bytes);
  limits.float_operations_per_second = OperationsPerSecond(pool, repeats, loops.floats);
  limits.bfloat16_operations_per_second = OperationsPerSecond(pool, repeats, loops.pairs);
  limits.stream_bytes_per_second = StreamBytesPerSecond(pool, repeats, loops.read);
  const double seconds = FastestSeconds(repeats, [] {
    const uint64_t result = MultiplyChain(kLoopIterations);
    Keep(&result);
  });
  limits.clock_hz = kMultiplyLatencyCycles * static_cast<double>(kLoopIterations) / seconds;
  return limits;
}

}  // namespace trireme::kernels::cpu

#include "tests/kernels/check_harness.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace trireme::kernels::check {
namespace {

constexpr int64_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};
constexpr std::byte kPoison{0xFF};  // 0xFFFFFFFF is a NaN

}  // namespace

uint64_t Random::Bits() {
  state_ += 0x9E3779B97F4A7C15U;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

int64_t Random::Below(int64_t limit) {
  return static_cast<int64_t>(Bits() % static_cast<uint64_t>(limit));
}

float Random::Uniform(float low, float high) {
  return low + (high - low) * static_cast<float>(Bits() >> 40) * 0x1p-24F;
}

float Random::Normal() {
  float sum = 0;
  for (int i = 0; i < 12; ++i) {
    sum += Uniform(0, 1);
  }
  return sum - 6.0F;
}

void Random::FillNormal(float* x, int64_t count, float scale) {
  for (int64_t i = 0; i < count; ++i) {
    x[i] = Normal() * scale;
  }
}

GuardedBytes::GuardedBytes(int64_t bytes)
    : storage_(static_cast<size_t>(bytes + 2 * kGuardBytes + 64), kGuard), bytes_(bytes) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(storage_.data()) + kGuardBytes;
  data_ = reinterpret_cast<std::byte*>((first + 63) / 64 * 64);
  std::memset(data_, static_cast<int>(kPoison), static_cast<size_t>(bytes));
}

bool GuardedBytes::GuardsAreIntact() const {
  for (const std::byte* p = storage_.data(); p < data_; ++p) {
    if (*p != kGuard) {
      return false;
    }
  }
  for (const std::byte* p = data_ + bytes_; p < storage_.data() + storage_.size(); ++p) {
    if (*p != kGuard) {
      return false;
    }
  }
  return true;
}

TestExecution::TestExecution(int threads, int64_t shared_scratch_bytes)
    : pool_(threads),
      worker_scratch_(std::make_unique<GuardedBytes>(threads * kWorkerScratchBytes)) {
  execution_.pool = &pool_;
  execution_.worker_scratch = worker_scratch_->data();
  ReserveShared(shared_scratch_bytes);
}

void TestExecution::ReserveShared(int64_t bytes) {
  if (shared_scratch_ != nullptr && shared_scratch_->bytes() >= bytes) {
    return;
  }
  shared_scratch_ = std::make_unique<GuardedBytes>(bytes);
  execution_.shared_scratch = shared_scratch_->data();
  execution_.shared_scratch_bytes = bytes;
}

void Checker::Expect(bool ok, const std::string& what) {
  if (ok) {
    ++passed;
    return;
  }
  ++failed;
  std::printf("FAILED %s: %s\n", table.name, what.c_str());
}

void Checker::ExpectSameBits(const float* actual, const float* expected, int64_t count,
                             const std::string& what) {
  int64_t differences = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < count; ++i) {
    const bool both_nan = std::isnan(actual[i]) && std::isnan(expected[i]);
    if (!both_nan && std::memcmp(actual + i, expected + i, sizeof(float)) != 0) {
      first = first < 0 ? i : first;
      ++differences;
    }
  }
  std::string message = what;
  if (differences > 0) {
    char detail[160];
    std::snprintf(detail, sizeof(detail),
                  ": %lld of %lld differ, first [%lld] is %.9g (%a), not %.9g (%a)",
                  static_cast<long long>(differences), static_cast<long long>(count),
                  static_cast<long long>(first), static_cast<double>(actual[first]),
                  static_cast<double>(actual[first]), static_cast<double>(expected[first]),
                  static_cast<double>(expected[first]));
    message += detail;
  }
  Expect(differences == 0, message);
}

void Checker::ExpectSameBytes(const void* actual, const void* expected, int64_t bytes,
                              const std::string& what) {
  Expect(std::memcmp(actual, expected, static_cast<size_t>(bytes)) == 0, what);
}

double NowSeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string Describe(const char* op, std::vector<int64_t> extents) {
  std::string text = op;
  for (const int64_t extent : extents) {
    text += " " + std::to_string(extent);
  }
  return text;
}

void CopyTo(Guarded<float>& target, Guarded<float>& source) {
  std::memcpy(target.data(), source.data(), static_cast<size_t>(source.count()) * sizeof(float));
}

void ExpectQuantized(Checker& checker, float* y, int64_t tokens, int64_t columns,
                     GuardedBytes& quantized, const std::string& what) {
  GuardedBytes expected(quantized.bytes());
  checker.table.quantize(checker.execution.get(), {.x = y,
                                                   .tokens = tokens,
                                                   .columns = columns,
                                                   .x_stride = columns,
                                                   .quantized = expected.data()});
  checker.ExpectSameBytes(quantized.data(), expected.data(), quantized.bytes(),
                          what + " quantized");
  checker.Expect(quantized.GuardsAreIntact(), what + " guards of quantized");
}

}  // namespace trireme::kernels::check

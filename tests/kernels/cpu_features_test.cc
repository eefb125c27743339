#include "kernels/cpu/cpu_features.h"

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace trireme::kernels::cpu {
namespace {

// The kernel lists a flag only when it also saves the registers. Its name for the line differs
// between architectures.
std::set<std::string> KernelFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
    }
  }
  return {};
}

bool HasAll(const std::set<std::string>& flags, const std::set<std::string>& wanted) {
  for (const std::string& flag : wanted) {
    if (flags.count(flag) == 0) {
      return false;
    }
  }
  return true;
}

TEST(CpuFeatures, AgreeWithTheKernel) {
  const std::set<std::string> flags = KernelFlags();
  if (flags.empty()) {
    GTEST_SKIP() << "/proc/cpuinfo lists no flags here";
  }
  const CpuFeatures features = DetectCpuFeatures();
  EXPECT_EQ(features.has_avx2, HasAll(flags, {"avx2", "fma", "f16c"}));
  EXPECT_EQ(features.has_avx512, HasAll(flags, {"avx2", "fma", "f16c", "avx512f", "avx512bw",
                                                "avx512dq", "avx512vl", "avx512_vnni"}));
  EXPECT_EQ(features.has_avx512_bf16, features.has_avx512 && HasAll(flags, {"avx512_bf16"}));
  EXPECT_EQ(features.has_amx,
            features.has_avx512 && HasAll(flags, {"amx_tile", "amx_bf16", "avx512_fp16"}));
  EXPECT_EQ(features.has_neon_dot, HasAll(flags, {"asimddp", "atomics", "asimdrdm", "crc32"}));
}

// No stack of this process is too small for the tiles' state, so Linux grants them.
TEST(CpuFeatures, TilePermissionIsGrantedOnceAndAgain) {
  if (!DetectCpuFeatures().has_amx) {
    GTEST_SKIP() << "AMX not run: this processor has no tiles";
  }
  EXPECT_EQ(RequestTilePermission(), 0);
  EXPECT_EQ(RequestTilePermission(), 0);
}

}  // namespace
}  // namespace trireme::kernels::cpu

#include "launcher/load_progress.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace trireme::launcher {
namespace {

constexpr int kBarWidth = 40;
constexpr double kMebibyte = 1 << 20;

void DrawBar(const std::string& label, int64_t done_bytes, int64_t total_bytes) {
  const int filled = static_cast<int>(done_bytes * kBarWidth / total_bytes);
  absl::FPrintF(stderr, "\r%s [%s%s] %3d %% of %.1f MiB%s", label, std::string(filled, '#'),
                std::string(kBarWidth - filled, '.'), done_bytes * 100 / total_bytes,
                static_cast<double>(total_bytes) / kMebibyte,
                done_bytes == total_bytes ? "\n" : "");
}

}  // namespace

weights::LoadProgress ShowProgress(std::string label) {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  auto last_shown = std::make_shared<int64_t>(-1);
  return
      [label = std::move(label), is_terminal, last_shown](int64_t done_bytes, int64_t total_bytes) {
        if (total_bytes <= 0) {
          return;
        }
        const int64_t unit = is_terminal ? 100 : 10;
        const int64_t now = done_bytes * unit / total_bytes;
        if (now == *last_shown) {
          return;
        }
        *last_shown = now;
        if (is_terminal) {
          DrawBar(label, done_bytes, total_bytes);
        } else {
          absl::FPrintF(stderr, "%s %d %% of %.1f MiB\n", label, now * 10,
                        static_cast<double>(total_bytes) / kMebibyte);
        }
      };
}

void PrintRanks(const engine::ReplicaInfo& info) {
  for (size_t rank = 0; rank < info.rank_bytes.size(); ++rank) {
    const engine::RankBytes& bytes = info.rank_bytes[rank];
    absl::FPrintF(stderr,
                  "rank %d%s: weights %d bytes (%.1f MiB), KV %d bytes (%.1f MiB), workspace %d "
                  "bytes (%.1f MiB), read %d bytes (%.1f MiB) of the model's files\n",
                  rank, info.places.empty() ? "" : " on " + info.places[rank].host, bytes.weights,
                  static_cast<double>(bytes.weights) / kMebibyte, bytes.kv_cache,
                  static_cast<double>(bytes.kv_cache) / kMebibyte, bytes.workspace,
                  static_cast<double>(bytes.workspace) / kMebibyte, bytes.read,
                  static_cast<double>(bytes.read) / kMebibyte);
  }
}

}  // namespace trireme::launcher

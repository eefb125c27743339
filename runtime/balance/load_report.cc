#include "runtime/balance/load_report.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace trireme::balance {
namespace {

absl::Status Refused(const char* name, double value, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrFormat("load report refused: %s is %g, wanted %s", name, value, wanted));
}

}  // namespace

absl::Status AcceptReport(const LoadReport& report, uint64_t last_epoch, uint64_t last_seq) {
  if (report.epoch < last_epoch) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "load report refused: epoch %d is over, epoch %d has begun", report.epoch, last_epoch));
  }
  if (report.epoch == last_epoch && report.report_seq <= last_seq) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "load report refused: report_seq %d does not follow %d", report.report_seq, last_seq));
  }
  const struct {
    const char* name;
    int64_t value;
  } counts[] = {{"running_sequences", report.running_sequences},
                {"waiting_requests", report.waiting_requests},
                {"queued_tokens", report.queued_tokens},
                {"running_tokens", report.running_tokens},
                {"kv_blocks_total", report.blocks_total},
                {"kv_blocks_free", report.blocks_free},
                {"kv_blocks_reclaimable", report.blocks_reclaimable},
                {"new_requests_max", report.new_requests_max}};
  for (const auto& count : counts) {
    if (count.value < 0) {
      return Refused(count.name, static_cast<double>(count.value), "0 or more");
    }
  }
  if (report.blocks_free > report.blocks_total) {
    return Refused("kv_blocks_free", static_cast<double>(report.blocks_free),
                   absl::StrFormat("at most the total of %d", report.blocks_total));
  }
  const double rate = report.prefill_tokens_per_second;
  if (!std::isfinite(rate) || rate < 0) {
    return Refused("prefill_tokens_per_second", rate, "a number of 0 or more");
  }
  if (!std::isfinite(report.weight) || report.weight <= 0 || report.weight > 1) {
    return Refused("weight", report.weight, "more than 0 and at most 1");
  }
  if (report.step_time_p50 < absl::ZeroDuration() ||
      report.step_time_p50 == absl::InfiniteDuration()) {
    return Refused("step_time_p50", absl::ToDoubleSeconds(report.step_time_p50),
                   "a time of 0 or more seconds");
  }
  return absl::OkStatus();
}

}  // namespace trireme::balance

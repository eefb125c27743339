#include "runtime/weights/quantized/module_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trireme::weights {
namespace {

constexpr size_t kExpressionBytesMax = 10'000;
constexpr uint32_t kMatchStepsMax = 100'000;
constexpr uint32_t kMatchDepthMax = 10'000;

}  // namespace

absl::StatusOr<ModulePattern> ModulePattern::Compile(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* const code =
      expression.size() > kExpressionBytesMax
          ? nullptr
          : pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                          PCRE2_ANCHORED, &error, &offset, nullptr);
  if (code == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no regular expression of at most ", kExpressionBytesMax, " bytes"));
  }
  return ModulePattern(std::shared_ptr<void>(
      code, [](void* old) { pcre2_code_free(static_cast<pcre2_code*>(old)); }));
}

bool ModulePattern::Matches(absl::string_view module) const {
  const auto* const code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), kMatchStepsMax);
  pcre2_set_depth_limit(context.get(), kMatchDepthMax);
  return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0,
                     data.get(), context.get()) >= 0;
}

}  // namespace trireme::weights

#include "runtime/serve/validate_delivery.h"

#include "absl/strings/str_cat.h"
#include "inference.pb.h"

namespace trireme::serve {
namespace {

// An enum of the wire: 0 means unset, unknown numbers are invalid, the others as `is_supported`.
void CheckEnum(absl::string_view path, int value, bool is_known, bool is_supported,
               Violations* violations) {
  if (!is_known) {
    violations->Invalid(path, absl::StrCat(value, " is no value of this enum"));
  } else if (value != 0 && !is_supported) {
    violations->Unsupported(path);
  }
}

schedule::Priority PriorityOf(v1::Priority priority) {
  switch (priority) {
    case v1::PRIORITY_BATCH:
      return schedule::Priority::kBatch;
    case v1::PRIORITY_INTERACTIVE:
      return schedule::Priority::kInteractive;
    default:
      return schedule::Priority::kStandard;
  }
}

schedule::DisruptionPolicy PolicyOf(v1::DisruptionPolicy policy) {
  switch (policy) {
    case v1::DISRUPTION_POLICY_EXACT_OR_FAIL:
      return schedule::DisruptionPolicy::kExactOrFail;
    case v1::DISRUPTION_POLICY_FAIL:
      return schedule::DisruptionPolicy::kFail;
    default:
      return schedule::DisruptionPolicy::kResume;
  }
}

}  // namespace

schedule::Delivery CheckDelivery(const v1::Delivery& delivery, const ModelInfo& model,
                                 Violations* violations) {
  CheckEnum("delivery.priority", delivery.priority(), v1::Priority_IsValid(delivery.priority()),
            model.is_balanced, violations);
  CheckEnum("delivery.disruption_policy", delivery.disruption_policy(),
            v1::DisruptionPolicy_IsValid(delivery.disruption_policy()),
            model.is_balanced || delivery.disruption_policy() == v1::DISRUPTION_POLICY_FAIL,
            violations);
  CheckEnum("delivery.determinism", delivery.determinism(),
            v1::Determinism_IsValid(delivery.determinism()), /*is_supported=*/true, violations);
  if (delivery.has_ttft_budget()) violations->Unsupported("delivery.ttft_budget");
  if (delivery.has_itl_budget()) violations->Unsupported("delivery.itl_budget");
  if (delivery.has_chunking()) violations->Unsupported("delivery.chunking");
  return {.priority = PriorityOf(delivery.priority()),
          .disruption_policy = PolicyOf(delivery.disruption_policy()),
          .tenant = {}};
}

void CheckCache(const v1::Cache& cache, Violations* violations) {
  constexpr size_t kSaltBytesMax = 32;
  CheckEnum("cache.scope", cache.scope(), v1::CacheScope_IsValid(cache.scope()),
            cache.scope() == v1::CACHE_SCOPE_NONE, violations);
  if (cache.salt().size() > kSaltBytesMax) {
    violations->Invalid("cache.salt", absl::StrCat("has ", cache.salt().size(), " bytes; at most ",
                                                   kSaltBytesMax, " are allowed"));
  } else if (!cache.salt().empty()) {
    violations->Unsupported("cache.salt");
  }
  if (!cache.session().empty()) violations->Unsupported("cache.session");
}

}  // namespace trireme::serve

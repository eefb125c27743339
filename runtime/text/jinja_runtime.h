// Runtime: what one rendering of a template may use, and what it owns. Steps, depth and sizes are
// limited here and nowhere else, so a hostile template ends with an error that names the limit. One
// rendering, one thread, one Runtime. A *step* is one evaluated node or 32 bytes of strings or
// values made; so the step limit bounds both time and memory.
#ifndef TRIREME_RUNTIME_TEXT_JINJA_RUNTIME_H_
#define TRIREME_RUNTIME_TEXT_JINJA_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "runtime/text/jinja_strings.h"
#include "runtime/text/jinja_value.h"

namespace trireme::text::jinja {

struct RuntimeLimits {
  // A step makes at most 32 bytes, so this is about 48 MiB, and 0.2 s on a slow core; a
  // conversation of a million tokens needs a fourth. With the template's tree and what malloc adds
  // it takes under 64 MiB (template_memory_test.cc).
  int64_t steps_max = 1'500'000;
  // Nested evaluations. They take under 1 KiB of stack each, so 256 KiB are enough; a tool's schema
  // of ten levels needs up to 100 of them (measured on published templates).
  int depth_max = 200;
  // A prompt for the longest contexts has a few MiB.
  size_t output_bytes_max = size_t{16} << 20;
  // Strings in messages, tools and variables together.
  size_t input_bytes_max = size_t{16} << 20;
};

// Nested lists and mappings that are compared, printed or read from JSON.
inline constexpr int kDataDepthMax = 128;
// The limit of Jinja's sandbox.
inline constexpr int64_t kRangeItemsMax = 100'000;

class Runtime {
 public:
  // `now` is what strftime_now() formats.
  Runtime(const RuntimeLimits& limits, absl::CivilSecond now) : limits_(limits), now_(now) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const RuntimeLimits& limits() const { return limits_; }
  absl::CivilSecond now() const { return now_; }
  int64_t steps() const { return steps_; }

  // RESOURCE_EXHAUSTED once the steps are used up.
  [[nodiscard]] absl::Status Spend(int64_t steps) {
    steps_ += steps;
    return steps_ <= limits_.steps_max ? absl::OkStatus() : StepsExhausted();
  }
  // The same where no error can be returned; the next Spend reports it.
  void Charge(int64_t steps) { steps_ += steps; }
  [[nodiscard]] absl::Status SpendBytes(size_t bytes) {
    return Spend(static_cast<int64_t>(bytes / 32) + 1);
  }
  // Call before `text` grows by `bytes`.
  [[nodiscard]] absl::Status SpendGrowth(const TracedText& text, size_t bytes) {
    return SpendBytes(text.GrowthBytes(bytes));
  }
  // Looking at each character of a text, which takes longer than copying it.
  [[nodiscard]] absl::Status SpendCharacters(size_t bytes) {
    return Spend(static_cast<int64_t>(bytes / 8) + 1);
  }
  // Counts a string of the input. RESOURCE_EXHAUSTED beyond input_bytes_max.
  [[nodiscard]] absl::Status SpendInput(size_t bytes);
  // Call before making something of `count` parts of `bytes_each`, which may be a hostile number.
  [[nodiscard]] absl::Status SpendProduct(Integer count, size_t bytes_each);

  // Makers of values. Strings and containers are charged by size.
  absl::StatusOr<Value> String(TracedText text, StringFlavor flavor = StringFlavor::kPlain);
  absl::StatusOr<Value> String(std::string bytes, Origin origin);
  absl::StatusOr<Value> List(std::vector<Value> items,
                             SequenceFlavor flavor = SequenceFlavor::kList);
  absl::StatusOr<Map*> NewMap();
  // Any other object; the pointer lives as long as the Runtime.
  template <typename T, typename... Args>
  T* New(Args&&... args) {
    auto owned = std::make_unique<T>(std::forward<Args>(args)...);
    T* object = owned.get();
    objects_.push_back(std::move(owned));
    return object;
  }

  // The items a `for` goes through: characters, keys, items. An undefined value has none.
  // INVALID_ARGUMENT for what cannot be iterated. A generator is used up by it.
  absl::StatusOr<std::vector<Value>> Iterate(const Value& value);

 private:
  absl::Status StepsExhausted() const;

  const RuntimeLimits limits_;
  const absl::CivilSecond now_;
  int64_t steps_ = 0;
  size_t input_bytes_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

// INVALID_ARGUMENT with the parts put together; the interpreter adds the place.
template <typename... Parts>
absl::Status TemplateError(const Parts&... parts) {
  return absl::InvalidArgumentError(Joined(parts...));
}

// Fails when the value is undefined, with its reason.
absl::Status RequireDefined(const Value& value);

// Gives arguments to the parameters of a filter, test, method or function. Result: one pointer a
// name, null when not given. Errors: too many, unknown, given twice. The pointers live as long as
// `arguments`.
absl::StatusOr<std::vector<const Value*>> BindArguments(std::string_view callee,
                                                        const Arguments& arguments,
                                                        const std::vector<std::string_view>& names);

// The bytes of an argument. Error: missing, or not a string.
absl::StatusOr<std::string_view> RequireString(std::string_view callee, const Value* argument);
// An argument that is missing or none gives `otherwise`. Error: not an integer.
absl::StatusOr<Integer> IntegerOr(std::string_view callee, const Value* argument,
                                  Integer otherwise);
// A missing argument is false.
bool IsTrueArgument(const Value* argument);

}  // namespace trireme::text::jinja

#endif  // TRIREME_RUNTIME_TEXT_JINJA_RUNTIME_H_

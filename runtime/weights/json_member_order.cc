#include "runtime/weights/json_member_order.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace trireme::weights {
namespace {

// Follows the parser through the text. depth_ counts the objects and lists around the place,
// matched_ those of them, from the outermost on, that lie on the path: no step leads to the first.
class OrderReader {
 public:
  explicit OrderReader(absl::Span<const std::string> path) : path_(path) {}

  std::vector<std::string> TakeNames() { return std::move(names_); }

  bool start_object(size_t /*elements*/) {
    Enter(/*is_object=*/true);
    return true;
  }
  bool end_object() { return Leave(); }
  bool start_array(size_t /*elements*/) {
    Enter(/*is_object=*/false);
    return true;
  }
  bool end_array() { return Leave(); }

  bool key(std::string& name) {
    next_matches_ = matched_ == depth_ && matched_ <= path_.size() && name == path_[matched_ - 1];
    if (matched_ == depth_ && matched_ == path_.size() + 1 && seen_.insert(name).second) {
      names_.push_back(name);
    }
    return true;
  }

  bool null() { return Value(); }
  bool boolean(bool /*value*/) { return Value(); }
  bool number_integer(int64_t /*value*/) { return Value(); }
  bool number_unsigned(uint64_t /*value*/) { return Value(); }
  bool number_float(double /*value*/, const std::string& /*text*/) { return Value(); }
  bool string(std::string& /*value*/) { return Value(); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return Value(); }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) {
    return false;
  }

 private:
  void Enter(bool is_object) {
    if (is_object && (depth_ == 0 || next_matches_)) {
      ++matched_;
      if (matched_ == path_.size() + 1) {
        names_.clear();
        seen_.clear();
      }
    }
    next_matches_ = false;
    ++depth_;
  }

  bool Leave() {
    if (matched_ == depth_) {
      --matched_;
    }
    --depth_;
    return true;
  }

  bool Value() {
    next_matches_ = false;
    return true;
  }

  const absl::Span<const std::string> path_;
  size_t depth_ = 0;
  size_t matched_ = 0;
  bool next_matches_ = false;  // the value that comes is the next step of the path
  std::vector<std::string> names_;
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

std::vector<std::string> JsonMemberOrder(absl::string_view text,
                                         absl::Span<const std::string> path) {
  OrderReader reader(path);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.TakeNames();
}

}  // namespace trireme::weights

#include "runtime/text/post_processor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/json_fields.h"

namespace trireme::text {
namespace {

constexpr char kKnownTypes[] = "Sequence, TemplateProcessing, ByteLevel";
constexpr size_t kTokensMax = 1000;
constexpr int32_t kText = -1;  // stands for the ids of the text

// What the reference passes from processor to processor: lists that are joined in the end. A
// template makes one for each of its parts, and one that gets two takes them for a pair of texts.
using Parts = std::vector<std::vector<int32_t>>;

class PostProcessorReader {
 public:
  explicit PostProcessorReader(int32_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

  absl::Status Run(const JsonFields& fields, const std::string& type) {
    if (type == "ByteLevel") {
      return absl::OkStatus();
    }
    return type == "TemplateProcessing" ? RunTemplate(fields)
                                        : UnknownType(fields.path(), type, kKnownTypes);
  }

  const Parts& parts() const { return parts_; }

 private:
  absl::Status RunTemplate(const JsonFields& fields) {
    if (parts_.size() > 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(fields.path(), " follows a template of more than two parts"));
    }
    const char* const key = parts_.size() == 1 ? "single" : "pair";
    ASSIGN_OR_RETURN(const nlohmann::json* list, fields.List(key));
    Parts result;
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string path = absl::StrFormat("%s[%d]", fields.PathOf(key), i);
      ASSIGN_OR_RETURN(const JsonFields item, JsonFields::Of((*list)[i], path));
      if (item.Find("Sequence") != nullptr) {
        ASSIGN_OR_RETURN(const JsonFields sequence, item.Object("Sequence"));
        const nlohmann::json* const id = sequence.Find("id");
        const bool is_first = id != nullptr && *id == "A";
        const bool is_second = id != nullptr && *id == "B";
        const size_t index = is_first ? 0 : 1;
        if (!(is_first || is_second) || index >= parts_.size()) {
          return absl::InvalidArgumentError(absl::StrCat(path, " names a text that is not there"));
        }
        result.push_back(parts_[index]);
      } else {
        ASSIGN_OR_RETURN(result.emplace_back(), IdsOf(fields, item));
      }
    }
    parts_ = std::move(result);
    return absl::OkStatus();
  }

  // The ids of {"SpecialToken": {"id": "<s>"}}, which "special_tokens" of the template lists.
  absl::StatusOr<std::vector<int32_t>> IdsOf(const JsonFields& fields, const JsonFields& item) {
    ASSIGN_OR_RETURN(const JsonFields special, item.Object("SpecialToken"));
    ASSIGN_OR_RETURN(const std::string name, special.String("id"));
    ASSIGN_OR_RETURN(const JsonFields all, fields.Object("special_tokens"));
    ASSIGN_OR_RETURN(const JsonFields entry, all.Object(name));
    ASSIGN_OR_RETURN(const nlohmann::json* list, entry.List("ids"));
    if (list->size() > kTokensMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s has over %d ids", entry.PathOf("ids"), kTokensMax));
    }
    std::vector<int32_t> ids;
    for (const nlohmann::json& value : *list) {
      ASSIGN_OR_RETURN(const int32_t id, TokenIdOf(value, entry.PathOf("ids")));
      if (id >= vocabulary_size_) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s has the id %d; the vocabulary has %d tokens", entry.PathOf("ids"),
                            id, vocabulary_size_));
      }
      ids.push_back(id);
    }
    return ids;
  }

  const int32_t vocabulary_size_;
  Parts parts_ = {{kText}};
};

}  // namespace

absl::StatusOr<SurroundingTokens> ReadPostProcessor(const nlohmann::json& spec,
                                                    const std::string& path,
                                                    int32_t vocabulary_size) {
  PostProcessorReader reader(vocabulary_size);
  if (!spec.is_null()) {
    RETURN_IF_ERROR(VisitParts(spec, path, "processors",
                               [&reader](const JsonFields& fields, const std::string& type) {
                                 return reader.Run(fields, type);
                               }));
  }
  SurroundingTokens result;
  int texts = 0;
  for (const std::vector<int32_t>& part : reader.parts()) {
    for (const int32_t id : part) {
      if (id == kText) {
        ++texts;
      } else {
        (texts == 0 ? result.prefix_ids : result.suffix_ids).push_back(id);
      }
    }
  }
  if (texts != 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has the text %d times; wanted once", path, texts));
  }
  if (result.prefix_ids.size() + result.suffix_ids.size() > kTokensMax) {
    return absl::InvalidArgumentError(absl::StrFormat("%s adds over %d tokens", path, kTokensMax));
  }
  return result;
}

}  // namespace trireme::text

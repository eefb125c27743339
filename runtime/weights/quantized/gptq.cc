#include "runtime/weights/quantized/gptq.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/groups.h"
#include "runtime/weights/quantized/module_pattern.h"

namespace trireme::weights {
namespace {

constexpr int64_t kPlainBits = 16;  // of modules that are not quantised

struct Settings {
  int64_t bits = 4;
  int64_t group_size = 128;
  bool has_act_order = false;
};

// Settings of modules that differ from the model's: of one module, or of all that a pattern names.
struct Override {
  std::string module;
  std::optional<ModulePattern> pattern;
  Settings settings;

  bool SpeaksOf(absl::string_view name) const {
    return pattern.has_value() ? pattern->Matches(name) : name == module;
  }
};

absl::StatusOr<Settings> ReadSettings(const JsonConfig& config, const Settings& base) {
  Settings settings;
  ASSIGN_OR_RETURN(settings.bits, config.IntegerOr("bits", base.bits));
  if (settings.bits != 2 && settings.bits != 3 && settings.bits != 4 && settings.bits != 8) {
    return config.Error("bits", absl::StrCat("is ", settings.bits, ", wanted 2, 3, 4 or 8"));
  }
  ASSIGN_OR_RETURN(settings.group_size, config.IntegerOr("group_size", base.group_size));
  RETURN_IF_ERROR(CheckGroupSize(config, "group_size", settings.group_size));
  ASSIGN_OR_RETURN(settings.has_act_order, config.BoolOr("desc_act", base.has_act_order));
  return settings;
}

// `dynamic` of GPTQModel, by regular expression; those with "-:" name modules that are not
// quantised, which their tensors say as well. `extra_config` of AutoRound, by name.
absl::StatusOr<std::vector<Override>> ReadOverrides(const JsonConfig& config,
                                                    const Settings& base) {
  std::vector<Override> overrides;
  for (const auto& [name, settings] : config.Objects("dynamic")) {
    absl::string_view expression = name;
    if (absl::ConsumePrefix(&expression, "-:")) {
      continue;
    }
    absl::ConsumePrefix(&expression, "+:");
    auto pattern = ModulePattern::Compile(std::string(expression));
    if (!pattern.ok()) {
      return config.Error(absl::StrCat("dynamic.", name), pattern.status().message());
    }
    ASSIGN_OR_RETURN(const Settings own, ReadSettings(*settings, base));
    overrides.push_back({.pattern = *std::move(pattern), .settings = own});
  }
  for (const auto& [name, settings] : config.Objects("extra_config")) {
    ASSIGN_OR_RETURN(const int64_t bits, settings->IntegerOr("bits", base.bits));
    if (bits < kPlainBits) {
      ASSIGN_OR_RETURN(const Settings own, ReadSettings(*settings, base));
      overrides.push_back({.module = name, .settings = own});
    }
  }
  return overrides;
}

class Gptq final : public Method {
 public:
  static absl::StatusOr<std::unique_ptr<Method>> Create(const JsonConfig& config) {
    auto gptq = std::make_unique<Gptq>();
    ASSIGN_OR_RETURN(gptq->base_, ReadSettings(config, Settings()));
    ASSIGN_OR_RETURN(gptq->overrides_, ReadOverrides(config, gptq->base_));
    for (const char* key : {"checkpoint_format", "format"}) {
      ASSIGN_OR_RETURN(const std::string format, config.StringOr(key, "gptq"));
      if (format != "gptq" && format != "gptq_v2") {
        return config.Error(
            key, absl::StrCat("is ", PrintableName(format),
                              ", another layout of the same tensors; wanted gptq or gptq_v2"));
      }
      gptq->is_second_format_ = gptq->is_second_format_ || format == "gptq_v2";
    }
    ASSIGN_OR_RETURN(const std::string word, config.StringOr("pack_dtype", "int32"));
    if (word != "int32") {
      return config.Error("pack_dtype", absl::StrCat("is ", PrintableName(word), ", wanted int32"));
    }
    return std::unique_ptr<Method>(std::move(gptq));
  }

  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    if (!module.Has("qweight")) {
      return nullptr;
    }
    RETURN_IF_ERROR(module.CheckNoPlainWeight("qweight"));
    const Settings settings = SettingsOf(module.name());
    const int bits = static_cast<int>(settings.bits);
    ASSIGN_OR_RETURN(const StoredPart codes, module.Get("qweight", {"I32"}));
    if (codes.extents.size() != 2) {
      return module.Error("qweight", "is no matrix");
    }
    const int64_t words = codes.extents[0];
    QuantizedParts parts;
    parts.source = &module.source();
    parts.extents = {.rows = codes.extents[1], .columns = words * 32 / bits};
    if (words * 32 % bits != 0 || parts.extents.rows * bits % 32 != 0) {
      return module.Error("qweight", absl::StrFormat("has the shape [%d, %d], in which codes of %d "
                                                     "bits do not fill whole words",
                                                     words, codes.extents[1], bits));
    }
    RETURN_IF_ERROR(module.CheckMatrix("qweight", parts.extents, wanted));
    ASSIGN_OR_RETURN(parts.groups, GroupsOf(module, parts.extents.columns, settings.group_size));
    parts.group_columns = parts.extents.columns / parts.groups;
    parts.scheme = absl::StrCat("gptq, ", bits, " bits, ", GroupText(parts.group_columns));
    parts.Add(codes);
    parts.code_bits = bits;
    parts.codes = std::make_unique<WordCodes>(
        codes.bytes, WordPacking{.bits = bits, .word_stride = parts.extents.rows, .run_stride = 1});
    RETURN_IF_ERROR(AddScales(module, bits, &parts));
    RETURN_IF_ERROR(AddGroupIndices(module, settings.has_act_order, &parts));
    return std::make_shared<QuantizedMatrix>(std::move(parts));
  }

 private:
  Settings SettingsOf(absl::string_view module) const {
    for (const Override& own : overrides_) {
      if (own.SpeaksOf(module)) {
        return own.settings;
      }
    }
    return base_;
  }

  absl::Status AddScales(const ModuleTensors& module, int bits, QuantizedParts* parts) const {
    const int64_t rows = parts->extents.rows;
    ASSIGN_OR_RETURN(const StoredPart scales,
                     module.Get("scales", {"F16", "BF16", "F32"}, {parts->groups, rows}));
    const int64_t zero_words = rows * bits / 32;
    ASSIGN_OR_RETURN(const StoredPart zeros,
                     module.Get("qzeros", {"I32"}, {parts->groups, zero_words}));
    WordPacking packing{.bits = bits, .is_along_columns = false, .run_stride = zero_words};
    if (!is_second_format_) {
      // The first format stores zero points less one, subtracted from whole words.
      packing.word_addend = bits == 2   ? 0x55555555U
                            : bits == 4 ? 0x11111111U
                            : bits == 8 ? 0x01010101U
                                        : 0U;
      packing.code_addend = bits == 3 ? 1 : 0;
    }
    parts->Add(scales);
    parts->Add(zeros);
    parts->scales = std::make_unique<GridScales>(PartNumbers(module.source(), scales),
                                                 GridStrides{.group_stride = rows});
    parts->zero_points = std::make_unique<WordCodes>(zeros.bytes, packing);
    return absl::OkStatus();
  }

  // With act-order the inputs of a group are not neighbours; without it the part may be absent.
  static absl::Status AddGroupIndices(const ModuleTensors& module, bool has_act_order,
                                      QuantizedParts* parts) {
    if (!module.Has("g_idx") && (!has_act_order || parts->groups == 1)) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const StoredPart indices,
                     module.Get("g_idx", {"I32"}, {parts->extents.columns}));
    parts->Add(indices);
    return ReadGroupIndices(module, indices, parts);
  }

  Settings base_;
  std::vector<Override> overrides_;
  bool is_second_format_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> GptqMethod(const JsonConfig& config) {
  return Gptq::Create(config);
}

}  // namespace trireme::weights

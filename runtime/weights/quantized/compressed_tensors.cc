#include "runtime/weights/quantized/compressed_tensors.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_cursor.h"
#include "runtime/weights/quantized/float_parts.h"
#include "runtime/weights/quantized/groups.h"
#include "runtime/weights/quantized/module_pattern.h"

namespace trireme::weights {
namespace {

constexpr int64_t kWordBits = 32;

enum class Format : uint8_t { kPacked, kInteger, kFloat8, kNvfp4, kMxfp4, kMxfp8 };

struct FormatName {
  const char* name;
  bool is_float;
  Format format;
};
constexpr FormatName kFormats[] = {
    {"pack-quantized", false, Format::kPacked},     {"int-quantized", false, Format::kInteger},
    {"naive-quantized", false, Format::kInteger},   {"float-quantized", true, Format::kFloat8},
    {"naive-quantized", true, Format::kFloat8},     {"nvfp4-pack-quantized", true, Format::kNvfp4},
    {"mxfp4-pack-quantized", true, Format::kMxfp4}, {"mxfp8-quantized", true, Format::kMxfp8},
};

// One of config_groups: how the weights of some modules are stored.
struct Group {
  std::vector<std::string> names;       // targets by name, of a module or of a class of modules
  std::vector<ModulePattern> patterns;  // targets "re:..."
  Format format = Format::kPacked;
  int bits = 4;
  bool is_symmetric = true;
  std::string strategy;
  int64_t group_size = -1;
  bool has_act_order = false;  // the inputs of a group are not neighbours
  ScaleShape scales;           // of a strategy other than "group"

  bool NamesModule(absl::string_view module) const {
    return std::find(names.begin(), names.end(), module) != names.end() ||
           std::any_of(patterns.begin(), patterns.end(),
                       [&](const ModulePattern& pattern) { return pattern.Matches(module); });
  }
  bool NamesClass() const { return std::find(names.begin(), names.end(), "Linear") != names.end(); }
};

absl::Status FormatError(const JsonConfig& owner, absl::string_view name) {
  std::vector<std::string> known;
  for (const FormatName& format : kFormats) {
    known.emplace_back(format.name);
  }
  return owner.Error("format", absl::StrCat("is ", PrintableName(name),
                                            ", which this build does not read for weights of this "
                                            "type; it reads ",
                                            absl::StrJoin(known, ", ")));
}

// Of one group; groups of a model in "mixed-precision" must have their own.
absl::StatusOr<Format> ReadFormat(const JsonConfig& group, const JsonConfig& config,
                                  bool is_float) {
  const JsonConfig& owner = group.Has("format") ? group : config;
  ASSIGN_OR_RETURN(const std::string name, owner.StringOr("format", "none"));
  for (const FormatName& format : kFormats) {
    if (name == format.name && is_float == format.is_float) {
      return format.format;
    }
  }
  return FormatError(owner, name);
}

// The model's own format must be one of ours even where every group has another.
absl::Status CheckModelFormat(const JsonConfig& config) {
  ASSIGN_OR_RETURN(const std::string name, config.StringOr("format", "mixed-precision"));
  const bool is_known = name == "mixed-precision" || name == "dense" ||
                        std::any_of(std::begin(kFormats), std::end(kFormats),
                                    [&](const FormatName& format) { return name == format.name; });
  return is_known ? absl::OkStatus() : FormatError(config, name);
}

absl::Status ReadTargets(const JsonConfig& config, Group* group) {
  ASSIGN_OR_RETURN(const std::vector<std::string> targets, config.Strings("targets"));
  for (const std::string& target : targets) {
    absl::string_view expression = target;
    if (!absl::ConsumePrefix(&expression, "re:")) {
      group->names.push_back(target);
      continue;
    }
    auto pattern = ModulePattern::Compile(std::string(expression));
    if (!pattern.ok()) {
      return config.Error("targets", pattern.status().message());
    }
    group->patterns.push_back(*std::move(pattern));
  }
  return absl::OkStatus();
}

absl::Status ReadStrategy(const JsonConfig& weights, Group* group) {
  ASSIGN_OR_RETURN(group->strategy, weights.StringOr("strategy", "tensor"));
  ASSIGN_OR_RETURN(group->group_size, weights.IntegerOr("group_size", -1));
  RETURN_IF_ERROR(CheckGroupSize(weights, "group_size", group->group_size));
  if (group->strategy == "tensor") {
    group->scales.layout = ScaleLayout::kTensor;
  } else if (group->strategy == "channel" || group->strategy == "token") {
    group->scales.layout = ScaleLayout::kChannel;
  } else if (group->strategy == "block") {
    ASSIGN_OR_RETURN(const std::vector<int64_t> block, weights.Integers("block_structure"));
    if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
      return weights.Error("block_structure", "is no list of two numbers from 1, rows and columns");
    }
    group->scales = {
        .layout = ScaleLayout::kBlock, .block_rows = block[0], .block_columns = block[1]};
  } else if (group->strategy != "group" && group->strategy != "tensor_group") {
    return weights.Error("strategy", absl::StrCat("is ", PrintableName(group->strategy),
                                                  "; this build knows tensor, channel, group, "
                                                  "tensor_group and block"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Group> ReadGroup(const JsonConfig& config, const JsonConfig& whole) {
  Group group;
  const std::unique_ptr<JsonConfig> weights = config.Object("weights");
  if (weights == nullptr) {
    return config.Error("weights", "is missing: without it nothing says how weights are stored");
  }
  RETURN_IF_ERROR(ReadTargets(config, &group));
  ASSIGN_OR_RETURN(const int64_t bits, weights->Integer("num_bits"));
  ASSIGN_OR_RETURN(const std::string type, weights->StringOr("type", "int"));
  const bool is_float = type == "float";
  if (bits < 1 || bits > 8 || (is_float && bits != 4 && bits != 8)) {
    return weights->Error("num_bits", absl::StrCat("is ", bits, ", wanted ",
                                                   is_float ? "4 or 8 of floats" : "1 to 8"));
  }
  group.bits = static_cast<int>(bits);
  ASSIGN_OR_RETURN(group.format, ReadFormat(config, whole, is_float));
  const bool has_four_bits = group.format == Format::kNvfp4 || group.format == Format::kMxfp4;
  if (is_float && has_four_bits != (bits == 4)) {
    return weights->Error("num_bits",
                          absl::StrCat("is ", bits, ", which its format does not hold"));
  }
  ASSIGN_OR_RETURN(group.is_symmetric, weights->BoolOr("symmetric", true));
  ASSIGN_OR_RETURN(const std::string order, weights->StringOr("actorder", "none"));
  group.has_act_order = order == "group" || order == "dynamic";
  RETURN_IF_ERROR(ReadStrategy(*weights, &group));
  return group;
}

// The scales' places, for a matrix whose columns are known by now.
absl::StatusOr<ScaleShape> ScaleShapeOf(const ModuleTensors& module, const Group& group,
                                        int64_t columns) {
  if (group.strategy != "group" && group.strategy != "tensor_group") {
    return group.scales;
  }
  ASSIGN_OR_RETURN(const int64_t groups, GroupsOf(module, columns, group.group_size));
  return ScaleShape{.layout = ScaleLayout::kBlock, .block_columns = columns / groups};
}

// Whether each word was padded, as older versions did with widths that do not divide 32; seen from
// the words that there are.
absl::StatusOr<bool> IsPadded(const ModuleTensors& module, const char* suffix, int64_t codes,
                              int bits, int64_t words) {
  for (const bool is_padded : {false, true}) {
    if (words == PackedWords(codes, bits, is_padded)) {
      return is_padded;
    }
  }
  return module.Error(suffix, absl::StrFormat("has %d words for %d codes of %d bits, wanted %d",
                                              words, codes, bits, PackedWords(codes, bits, false)));
}

class CompressedTensors final : public Method {
 public:
  explicit CompressedTensors(std::vector<Group> groups) : groups_(std::move(groups)) {}

  absl::StatusOr<MaybeMatrix> Read(const ModuleTensors& module,
                                   const std::optional<MatrixExtents>& wanted) const override {
    const std::optional<StoredPart> plain = module.Find("weight");
    const bool is_packed = module.Has("weight_packed");
    const bool is_coded = plain.has_value() && (plain->dtype == "I8" || plain->dtype == "F8_E4M3" ||
                                                plain->dtype == "F8_E5M2");
    if (!is_packed && !is_coded) {
      return nullptr;
    }
    const Group* const group = GroupOf(module.name());
    const char* const codes = is_packed ? "weight_packed" : "weight";
    if (group == nullptr) {
      return module.Error(codes, "belongs to a module that no target of config_groups names");
    }
    if (is_packed) {
      RETURN_IF_ERROR(module.CheckNoPlainWeight(codes));
    }
    switch (group->format) {
      case Format::kPacked:
        return ReadPacked(module, *group, wanted);
      case Format::kInteger:
        return ReadIntegers(module, *group, wanted);
      case Format::kFloat8:
      case Format::kMxfp8: {
        Float8Layout layout{.scheme = "compressed-tensors, fp8", .scale_suffix = "weight_scale"};
        layout.has_exponents = group->format == Format::kMxfp8;
        if (!plain.has_value() || plain->extents.size() != 2) {
          return module.Error("weight", "is no matrix");
        }
        ASSIGN_OR_RETURN(layout.scales, ScaleShapeOf(module, *group, plain->extents[1]));
        return ReadFloat8(module, layout, wanted);
      }
      case Format::kNvfp4:
        return ReadFloat4(module,
                          {.scheme = "compressed-tensors, nvfp4",
                           .codes_suffix = "weight_packed",
                           .tensor_scale_suffix = "weight_global_scale",
                           .operation = TensorScale::kDivides},
                          wanted);
      case Format::kMxfp4:
        return ReadFloat4(module,
                          {.scheme = "compressed-tensors, mxfp4", .codes_suffix = "weight_packed"},
                          wanted);
    }
    return nullptr;
  }

 private:
  // A target by name or pattern before one by class.
  const Group* GroupOf(absl::string_view module) const {
    for (const Group& group : groups_) {
      if (group.NamesModule(module)) {
        return &group;
      }
    }
    for (const Group& group : groups_) {
      if (group.NamesClass()) {
        return &group;
      }
    }
    return nullptr;
  }

  static absl::StatusOr<MaybeMatrix> ReadPacked(const ModuleTensors& module, const Group& group,
                                                const std::optional<MatrixExtents>& wanted) {
    ASSIGN_OR_RETURN(const StoredPart codes, module.Get("weight_packed", {"I32"}));
    ASSIGN_OR_RETURN(const StoredPart shape, module.Get("weight_shape", {"I64", "I32"}, {2}));
    if (codes.extents.size() != 2) {
      return module.Error("weight_packed", "is no matrix");
    }
    QuantizedParts parts;
    parts.source = &module.source();
    parts.extents = ExtentsIn(shape);
    RETURN_IF_ERROR(module.CheckMatrix("weight_shape", parts.extents, wanted));
    const int64_t words = codes.extents[1];
    RETURN_IF_ERROR(module.CheckExtents(codes, {parts.extents.rows, words}));
    if (parts.extents.columns > words * kWordBits) {
      return module.Error("weight_shape",
                          absl::StrCat("says ", parts.extents.columns, " inputs, which ", words,
                                       " words cannot hold"));
    }
    ASSIGN_OR_RETURN(const bool is_padded,
                     IsPadded(module, "weight_packed", parts.extents.columns, group.bits, words));
    parts.Add(codes);
    parts.Add(shape);
    parts.codes = std::make_unique<WordCodes>(
        codes.bytes, WordPacking{.bits = group.bits, .is_padded = is_padded, .run_stride = words});
    parts.zero_point = 1 << (group.bits - 1);
    parts.code_bits = group.bits;
    RETURN_IF_ERROR(AddIntegerScales(module, group, &parts));
    if (module.Has("weight_g_idx") || (group.has_act_order && parts.groups > 1)) {
      ASSIGN_OR_RETURN(const StoredPart indices,
                       module.Get("weight_g_idx", {"I32"}, {parts.extents.columns}));
      parts.Add(indices);
      RETURN_IF_ERROR(ReadGroupIndices(module, indices, &parts));
    }
    return std::make_shared<QuantizedMatrix>(std::move(parts));
  }

  static absl::StatusOr<MaybeMatrix> ReadIntegers(const ModuleTensors& module, const Group& group,
                                                  const std::optional<MatrixExtents>& wanted) {
    ASSIGN_OR_RETURN(const StoredPart codes, module.Get("weight", {"I8"}));
    if (codes.extents.size() != 2) {
      return module.Error("weight", "is no matrix");
    }
    QuantizedParts parts;
    parts.source = &module.source();
    parts.extents = {.rows = codes.extents[0], .columns = codes.extents[1]};
    RETURN_IF_ERROR(module.CheckMatrix("weight", parts.extents, wanted));
    parts.Add(codes);
    parts.codes =
        std::make_unique<ByteCodes>(codes.bytes, parts.extents.columns, /*is_signed=*/true);
    parts.zero_point = 128;
    RETURN_IF_ERROR(AddIntegerScales(module, group, &parts));
    return std::make_shared<QuantizedMatrix>(std::move(parts));
  }

  static MatrixExtents ExtentsIn(const StoredPart& shape) {
    const uint8_t* const bytes = shape.bytes.data();
    return shape.dtype == "I64" ? MatrixExtents{.rows = LoadUnaligned<int64_t>(bytes),
                                                .columns = LoadUnaligned<int64_t>(bytes + 8)}
                                : MatrixExtents{.rows = LoadUnaligned<int32_t>(bytes),
                                                .columns = LoadUnaligned<int32_t>(bytes + 4)};
  }

  static absl::Status AddIntegerScales(const ModuleTensors& module, const Group& group,
                                       QuantizedParts* parts) {
    ASSIGN_OR_RETURN(const StoredPart scales, module.Get("weight_scale", {"BF16", "F16", "F32"}));
    ASSIGN_OR_RETURN(const ScaleShape shape, ScaleShapeOf(module, group, parts->extents.columns));
    RETURN_IF_ERROR(AddScales(module, scales, shape, parts));
    parts->scheme =
        absl::StrCat("compressed-tensors, int", group.bits, ", ", GroupText(parts->group_columns));
    if (group.is_symmetric) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const StoredPart zeros, module.Get("weight_zero_point", {"I32", "I8"}));
    parts->Add(zeros);
    if (zeros.dtype == "I8") {
      return AddZeroBytes(module, group, scales, zeros, parts);
    }
    const int64_t rows = parts->extents.rows;
    const int64_t words = zeros.extents.empty() ? 0 : zeros.extents[0];
    if (shape.layout == ScaleLayout::kTensor || shape.block_rows != 1) {
      return module.Error("weight_zero_point", "is packed, which is read for groups and rows only");
    }
    RETURN_IF_ERROR(module.CheckExtents(zeros, {words, parts->groups}));
    ASSIGN_OR_RETURN(const bool is_padded,
                     IsPadded(module, "weight_zero_point", rows, group.bits, words));
    parts->zero_points =
        std::make_unique<WordCodes>(zeros.bytes, WordPacking{.bits = group.bits,
                                                             .is_along_columns = false,
                                                             .is_padded = is_padded,
                                                             .word_stride = parts->groups,
                                                             .run_stride = 1});
    return absl::OkStatus();
  }

  // Zero points of a byte each, beside scales of a row or a group.
  static absl::Status AddZeroBytes(const ModuleTensors& module, const Group& group,
                                   const StoredPart& scales, const StoredPart& zeros,
                                   QuantizedParts* parts) {
    RETURN_IF_ERROR(module.CheckExtents(zeros, scales.extents));
    const bool is_one_offset = group.format == Format::kInteger || group.bits == 8;
    if (!is_one_offset || zeros.values() != parts->extents.rows * parts->groups) {
      return module.Error("weight_zero_point",
                          "holds bytes, which are read for codes of 8 bits with scales of rows or "
                          "groups");
    }
    parts->zero_points =
        std::make_unique<ByteCodes>(zeros.bytes, parts->groups, /*is_signed=*/true);
    return absl::OkStatus();
  }

  const std::vector<Group> groups_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Method>> CompressedTensorsMethod(const JsonConfig& config) {
  if (const std::unique_ptr<JsonConfig> sparsity = config.Object("sparsity_config")) {
    ASSIGN_OR_RETURN(const std::string format, sparsity->StringOr("format", "dense"));
    if (format != "dense") {
      return sparsity->Error("format",
                             absl::StrCat("is ", PrintableName(format), ", wanted dense"));
    }
  }
  RETURN_IF_ERROR(CheckModelFormat(config));
  std::vector<Group> groups;
  for (const auto& [name, member] : config.Objects("config_groups")) {
    ASSIGN_OR_RETURN(Group group, ReadGroup(*member, config));
    groups.push_back(std::move(group));
  }
  if (groups.empty()) {
    return config.Error("config_groups",
                        "is missing or empty: nothing says how weights are stored");
  }
  return std::make_unique<CompressedTensors>(std::move(groups));
}

}  // namespace trireme::weights

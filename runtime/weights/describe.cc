#include "runtime/weights/describe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/utf8.h"

namespace trireme::weights {
namespace {

using Json = nlohmann::ordered_json;

struct Sum {
  int64_t tensors = 0;
  int64_t elements = 0;
  int64_t bytes = 0;

  void Add(const GgufTensor& tensor) {
    ++tensors;
    elements += tensor.elements;
    bytes += tensor.size_bytes;
  }
  double BitsPerWeight() const { return BitsPerWeightOf(bytes, elements); }

  static double BitsPerWeightOf(int64_t bytes, int64_t elements) {
    return elements == 0 ? 0.0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(elements);
  }
};

Sum SumOf(const QuantizedMatrix& matrix) {
  return {.tensors = 1,
          .elements = matrix.extents().rows * matrix.extents().columns,
          .bytes = matrix.stored_bytes()};
}

double BitsPerWeightOf(const GgmlType& type) {
  return Sum::BitsPerWeightOf(type.block_bytes, type.block_values);
}

struct Sums {
  Sum all;
  std::map<uint32_t, Sum> by_type_id;
};

Sums SumsOf(const GgufFile& file) {
  Sums sums;
  for (const GgufTensor& tensor : file.tensors()) {
    sums.all.Add(tensor);
    sums.by_type_id[tensor.type->id].Add(tensor);
  }
  return sums;
}

// At most `max_bytes` of well-formed text, cut between characters; the rest is counted.
struct ShortString {
  std::string text;
  int64_t bytes_left_out;
};

ShortString Shorten(absl::string_view text, int64_t max_bytes) {
  absl::string_view shown = text.substr(0, static_cast<size_t>(std::max<int64_t>(max_bytes, 0)));
  while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xc0) == 0x80) {
    shown.remove_suffix(1);
  }
  return {ReplaceInvalidUtf8(shown), static_cast<int64_t>(text.size() - shown.size())};
}

std::string FloatText(GgufType type, double value) {
  return type == GgufType::kFloat32 ? absl::StrFormat("%.9g", value)
                                    : absl::StrFormat("%.17g", value);
}

std::string ValueText(const GgufValue& value, const DescribeOptions& options) {
  if (const std::optional<absl::string_view> text = value.AsString()) {
    const ShortString shown = Shorten(*text, options.max_string_bytes);
    const std::string quoted = absl::StrCat("\"", absl::Utf8SafeCEscape(shown.text), "\"");
    return shown.bytes_left_out == 0 ? quoted
                                     : absl::StrCat(quoted, "... (", text->size(), " bytes)");
  }
  if (value.type() == GgufType::kArray) {
    std::vector<std::string> elements;
    GgufElements walk(value);
    for (int64_t i = 0; i < options.max_array_elements; ++i) {
      const std::optional<GgufValue> element = walk.Next();
      if (!element.has_value()) {
        break;
      }
      elements.push_back(ValueText(*element, options));
    }
    const bool whole = static_cast<int64_t>(elements.size()) == value.element_count();
    return absl::StrCat("[", absl::StrJoin(elements, ", "), whole ? "]" : ", ...]");
  }
  if (const std::optional<int64_t> number = value.AsInteger()) {
    return absl::StrCat(*number);
  }
  if (const std::optional<uint64_t> number = value.AsUnsigned()) {
    return absl::StrCat(*number);
  }
  if (const std::optional<double> number = value.AsFloat()) {
    return FloatText(value.type(), *number);
  }
  return value.AsBool().value_or(false) ? "true" : "false";
}

std::string TypeText(const GgufValue& value) {
  if (value.type() == GgufType::kArray) {
    return absl::StrCat(NameOf(value.element_type()), "[", value.element_count(), "]");
  }
  return NameOf(value.type());
}

std::string DimensionsText(const GgufTensor& tensor) {
  return tensor.dimension_count == 0
             ? "scalar"
             : absl::StrJoin(
                   absl::MakeConstSpan(tensor.dimensions).subspan(0, tensor.dimension_count),
                   " x ");
}

Json FloatJson(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json ValueJson(const GgufValue& value, const DescribeOptions& options) {
  if (const std::optional<absl::string_view> text = value.AsString()) {
    const ShortString shown = Shorten(*text, options.max_string_bytes);
    return shown.bytes_left_out == 0 ? shown.text
                                     : absl::StrCat(shown.text, "... (", text->size(), " bytes)");
  }
  if (value.type() == GgufType::kArray) {
    Json elements = Json::array();
    GgufElements walk(value);
    for (int64_t i = 0; i < options.max_array_elements; ++i) {
      const std::optional<GgufValue> element = walk.Next();
      if (!element.has_value()) {
        break;
      }
      elements.push_back(ValueJson(*element, options));
    }
    return elements;
  }
  if (const std::optional<int64_t> number = value.AsInteger()) {
    return *number;
  }
  if (const std::optional<uint64_t> number = value.AsUnsigned()) {
    return *number;
  }
  if (const std::optional<double> number = value.AsFloat()) {
    return FloatJson(*number);
  }
  return value.AsBool().value_or(false);
}

Json SumJson(const Sum& sum) {
  return {{"tensors", sum.tensors},
          {"elements", sum.elements},
          {"bytes", sum.bytes},
          {"bits_per_weight", sum.BitsPerWeight()}};
}

Json MetadataJson(const GgufFile& file, const DescribeOptions& options) {
  Json list = Json::array();
  for (const GgufEntry& entry : file.metadata().entries()) {
    Json item = {{"key", std::string(entry.key)}, {"type", NameOf(entry.value.type())}};
    if (entry.value.type() == GgufType::kArray) {
      item["element_type"] = NameOf(entry.value.element_type());
      item["count"] = entry.value.element_count();
    }
    item["value"] = ValueJson(entry.value, options);
    list.push_back(std::move(item));
  }
  return list;
}

Json TensorsJson(const GgufFile& file) {
  Json list = Json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    Json dimensions = Json::array();
    for (int i = 0; i < tensor.dimension_count; ++i) {
      dimensions.push_back(tensor.dimensions[i]);
    }
    list.push_back({{"name", std::string(tensor.name)},
                    {"dimensions", std::move(dimensions)},
                    {"type", tensor.type->name},
                    {"type_id", tensor.type->id},
                    {"elements", tensor.elements},
                    {"bytes", tensor.size_bytes},
                    {"bits_per_weight", BitsPerWeightOf(*tensor.type)},
                    {"part", tensor.part_index},
                    {"offset", tensor.data_offset}});
  }
  return list;
}

void AppendMetadata(const GgufFile& file, const DescribeOptions& options, std::string& text) {
  const std::vector<GgufEntry>& entries = file.metadata().entries();
  absl::StrAppend(&text, "\nmetadata (", entries.size(), " keys)\n");
  for (const GgufEntry& entry : entries) {
    absl::StrAppendFormat(&text, "  %-46s %-14s %s\n", PrintableName(entry.key),
                          TypeText(entry.value), ValueText(entry.value, options));
  }
}

void AppendTensors(const GgufFile& file, std::string& text) {
  absl::StrAppend(&text, "\ntensors (", file.tensors().size(), ")\n");
  if (file.tensors().empty()) {
    return;
  }
  absl::StrAppendFormat(&text, "  %-40s %-22s %-8s %11s %15s\n", "name", "dimensions", "type",
                        "bits/weight", "bytes");
  for (const GgufTensor& tensor : file.tensors()) {
    absl::StrAppendFormat(&text, "  %-40s %-22s %-8s %11.4g %15d\n", PrintableName(tensor.name),
                          DimensionsText(tensor), tensor.type->name, BitsPerWeightOf(*tensor.type),
                          tensor.size_bytes);
  }
}

void AppendSums(const GgufFile& file, std::string& text) {
  const Sums sums = SumsOf(file);
  absl::StrAppendFormat(&text, "\n  %-8s %8s %18s %15s %11s\n", "type", "tensors", "weights",
                        "bytes", "bits/weight");
  const auto append = [&text](absl::string_view name, const Sum& sum) {
    absl::StrAppendFormat(&text, "  %-8s %8d %18d %15d %11.4g\n", name, sum.tensors, sum.elements,
                          sum.bytes, sum.BitsPerWeight());
  };
  for (const auto& [type_id, sum] : sums.by_type_id) {
    append(FindGgmlType(type_id)->name, sum);
  }
  append("total", sums.all);
}

void AppendGeneration(const GenerationDefaults& generation, std::string& text) {
  absl::StrAppend(&text, "\ngeneration\n");
  for (const EndId& end : generation.end_ids) {
    absl::StrAppendFormat(&text, "  %-20s %-10d from %s\n", "end id", end.id, end.source);
  }
  for (const GenerationDefault& value : generation.sampling) {
    absl::StrAppendFormat(&text, "  %-20s %-10g from %s\n", value.name, value.value, value.source);
  }
}

Json GenerationJson(const GenerationDefaults& generation) {
  Json ends = Json::array();
  for (const EndId& end : generation.end_ids) {
    ends.push_back({{"id", end.id}, {"source", end.source}});
  }
  Json sampling = Json::object();
  for (const GenerationDefault& value : generation.sampling) {
    sampling[value.name] = {{"value", FloatJson(value.value)}, {"source", value.source}};
  }
  return {{"end_ids", std::move(ends)}, {"sampling", std::move(sampling)}};
}

void AppendQuantized(const Checkpoint& checkpoint, std::string& text) {
  const std::vector<std::string> names = checkpoint.QuantizedNames();
  if (names.empty()) {
    return;
  }
  absl::StrAppendFormat(&text, "\nquantised matrices (%d)\n  %-60s %-14s %11s  %s\n", names.size(),
                        "name", "dimensions", "bits/weight", "scheme");
  Sum all;
  for (const std::string& name : names) {
    const auto matrix = checkpoint.Quantized(name, std::nullopt);
    if (!matrix.ok()) {
      absl::StrAppendFormat(&text, "  %-60s cannot be read: %s\n", PrintableName(name),
                            matrix.status().message());
      continue;
    }
    const Sum sum = SumOf(**matrix);
    absl::StrAppendFormat(
        &text, "  %-60s %-14s %11.4g  %s\n", PrintableName(name),
        absl::StrCat((*matrix)->extents().rows, " x ", (*matrix)->extents().columns),
        sum.BitsPerWeight(), (*matrix)->scheme());
    all.tensors += 1;
    all.elements += sum.elements;
    all.bytes += sum.bytes;
  }
  absl::StrAppendFormat(&text, "  %-60s %-14d %11.4g\n", "total", all.elements,
                        all.BitsPerWeight());
}

Json QuantizedJson(const Checkpoint& checkpoint) {
  Json list = Json::array();
  for (const std::string& name : checkpoint.QuantizedNames()) {
    const auto matrix = checkpoint.Quantized(name, std::nullopt);
    if (!matrix.ok()) {
      list.push_back({{"name", name}, {"error", std::string(matrix.status().message())}});
      continue;
    }
    const Sum sum = SumOf(**matrix);
    list.push_back({{"name", name},
                    {"shape", {(*matrix)->extents().rows, (*matrix)->extents().columns}},
                    {"scheme", (*matrix)->scheme()},
                    {"bytes", sum.bytes},
                    {"bits_per_weight", sum.BitsPerWeight()}});
  }
  return list;
}

}  // namespace

std::string DescribeAsText(const Checkpoint& checkpoint, const GenerationDefaults& generation) {
  const std::vector<std::string> tensors = checkpoint.UnusedTensors({});
  std::string text = absl::StrCat(PrintableName(checkpoint.name()), ": safetensors, ",
                                  tensors.size(), " tensors\n\ntensors\n");
  for (const std::string& tensor : tensors) {
    absl::StrAppendFormat(&text, "  %-60s %s\n", PrintableName(tensor),
                          absl::StrJoin(*checkpoint.TensorExtents(tensor), " x "));
  }
  AppendQuantized(checkpoint, text);
  AppendGeneration(generation, text);
  return text;
}

std::string DescribeAsJson(const Checkpoint& checkpoint, const GenerationDefaults& generation) {
  Json list = Json::array();
  for (const std::string& tensor : checkpoint.UnusedTensors({})) {
    list.push_back({{"name", tensor}, {"shape", *checkpoint.TensorExtents(tensor)}});
  }
  const Json description = {{"file", checkpoint.name()},
                            {"tensors", std::move(list)},
                            {"quantized", QuantizedJson(checkpoint)},
                            {"generation", GenerationJson(generation)}};
  return absl::StrCat(description.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string DescribeAsText(const GgufFile& file, const DescribeOptions& options,
                           const GenerationDefaults* generation) {
  std::string text;
  absl::StrAppendFormat(&text, "%s: GGUF version %d, alignment %d, %d bytes",
                        PrintableName(file.name()), file.version(), file.alignment(),
                        file.file_bytes());
  if (file.part_count() > 1) {
    absl::StrAppend(&text, " in ", file.part_count(), " parts");
  }
  absl::StrAppend(&text, "\n");
  AppendMetadata(file, options, text);
  AppendTensors(file, text);
  AppendSums(file, text);
  if (generation != nullptr) {
    AppendGeneration(*generation, text);
  }
  return text;
}

std::string DescribeAsJson(const GgufFile& file, const DescribeOptions& options,
                           const GenerationDefaults* generation) {
  const Sums sums = SumsOf(file);
  Json types = Json::object();
  for (const auto& [type_id, sum] : sums.by_type_id) {
    types[FindGgmlType(type_id)->name] = SumJson(sum);
  }
  Json description = {{"file", file.name()},
                      {"version", file.version()},
                      {"alignment", file.alignment()},
                      {"parts", file.part_count()},
                      {"file_bytes", file.file_bytes()},
                      {"metadata", MetadataJson(file, options)},
                      {"tensors", TensorsJson(file)},
                      {"types", std::move(types)},
                      {"total", SumJson(sums.all)}};
  if (generation != nullptr) {
    description["generation"] = GenerationJson(*generation);
  }
  // The file's name is the user's and may be no UTF-8; replacing keeps dump() from throwing.
  return absl::StrCat(description.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace trireme::weights

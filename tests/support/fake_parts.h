// Tensors of one module in memory, and what a method makes of them: for tests of readers with
// hand-worked numbers.
#ifndef TRIREME_TESTS_SUPPORT_FAKE_PARTS_H_
#define TRIREME_TESTS_SUPPORT_FAKE_PARTS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/method.h"

namespace trireme::weights {

class FakeParts final : public PartSource {
 public:
  template <typename Number>
  FakeParts& Add(const std::string& name, const std::string& dtype, std::vector<int64_t> extents,
                 const std::vector<Number>& numbers) {
    std::vector<uint8_t> bytes(numbers.size() * sizeof(Number));
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
    }
    parts_[name] = {dtype, std::move(extents), std::move(bytes)};
    return *this;
  }
  void Remove(const std::string& name) { parts_.erase(name); }

  std::optional<StoredPart> FindPart(absl::string_view name) const override {
    const auto found = parts_.find(std::string(name));
    if (found == parts_.end()) {
      return std::nullopt;
    }
    return StoredPart{.name = found->first,
                      .dtype = found->second.dtype,
                      .extents = found->second.extents,
                      .bytes = found->second.bytes};
  }
  absl::Status PartError(absl::string_view name, absl::string_view text) const override {
    return absl::InvalidArgumentError(absl::StrCat(name, " ", text));
  }

  // What `method` reads of module "m".
  absl::StatusOr<MaybeMatrix> Read(const absl::StatusOr<std::unique_ptr<Method>>& method,
                                   std::optional<MatrixExtents> wanted = std::nullopt) const {
    return method.ok() ? (*method)->Read(ModuleTensors(*this, "m"), wanted)
                       : absl::StatusOr<MaybeMatrix>(method.status());
  }
  std::string ErrorOf(const absl::StatusOr<std::unique_ptr<Method>>& method,
                      std::optional<MatrixExtents> wanted = std::nullopt) const {
    return std::string(Read(method, wanted).status().message());
  }

 private:
  struct Part {
    std::string dtype;
    std::vector<int64_t> extents;
    std::vector<uint8_t> bytes;
  };
  std::map<std::string, Part> parts_;
};

inline std::unique_ptr<JsonConfig> ConfigOf(const std::string& json) {
  auto config = JsonConfig::Parse("config.json", json);
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

// All weights, rows one after another; empty and a failure where they cannot be read.
inline std::vector<float> ValuesOf(const absl::StatusOr<MaybeMatrix>& matrix) {
  if (!matrix.ok() || *matrix == nullptr) {
    ADD_FAILURE() << (matrix.ok() ? "stored plainly" : matrix.status().ToString());
    return {};
  }
  const MatrixExtents extents = (*matrix)->extents();
  std::vector<float> values(static_cast<size_t>(extents.rows * extents.columns));
  const absl::Status status =
      (*matrix)->Decode({0, extents.rows}, {0, extents.columns}, values.data());
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

inline absl::Status DecodeStatus(const absl::StatusOr<MaybeMatrix>& matrix) {
  if (!matrix.ok()) {
    return matrix.status();
  }
  const MatrixExtents extents = (*matrix)->extents();
  std::vector<float> values(static_cast<size_t>(extents.rows * extents.columns));
  return (*matrix)->Decode({0, extents.rows}, {0, extents.columns}, values.data());
}

}  // namespace trireme::weights

#endif  // TRIREME_TESTS_SUPPORT_FAKE_PARTS_H_

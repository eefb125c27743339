#include "runtime/weights/quantized/method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/fake_parts.h"

namespace trireme::weights {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

TEST(MethodTest, UnknownMethodsAreNamed) {
  for (const char* name : {"quip", "torchao"}) {
    const auto config = ConfigOf(std::string(R"({"quant_method":")") + name + R"("})");
    const std::string error(MethodOf(*config).status().message());
    EXPECT_THAT(error, HasSubstr(std::string("key quant_method is ") + name));
  }
  EXPECT_THAT(std::string(MethodOf(*ConfigOf("{}")).status().message()),
              HasSubstr("quant_method is missing"));
}

TEST(MethodTest, AutoRoundStoresOneOfTwoLayouts) {
  for (const char* format : {"auto_round:auto_gptq", "auto_round:auto_awq"}) {
    const auto config =
        ConfigOf(std::string(R"({"quant_method":"auto-round","bits":4,"packing_format":")") +
                 format + R"("})");
    EXPECT_TRUE(MethodOf(*config).ok()) << format;
  }
  const auto config =
      ConfigOf(R"({"quant_method":"auto-round","packing_format":"auto_round:exllamav2"})");
  EXPECT_THAT(std::string(MethodOf(*config).status().message()), HasSubstr("exllamav2"));
}

class ConfigFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("quant_config_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  absl::StatusOr<std::unique_ptr<JsonConfig>> Find(const std::string& config) const {
    return FindQuantizationConfig(folder_.string(), *ConfigOf(config));
  }

 private:
  fs::path folder_;
};

TEST_F(ConfigFilesTest, TheConfigComesBeforeFilesBesideIt) {
  EXPECT_EQ(*Find("{}"), nullptr);
  Write("hf_quant_config.json", R"({"quantization":{"quant_algo":"FP8"}})");
  EXPECT_TRUE((**Find("{}")).Has("quant_algo"));
  EXPECT_TRUE(MethodOf(**Find("{}")).ok());
  Write("quantize_config.json", R"({"bits":4,"desc_act":false})");
  EXPECT_TRUE(MethodOf(**Find("{}")).ok());
  EXPECT_EQ(*(**Find(R"({"quantization_config":{"quant_method":"fp8"}})")).String("quant_method"),
            "fp8");
  EXPECT_EQ(*(**Find(R"({"text_config":{"quantization_config":{"quant_method":"awq"}}})"))
                 .String("quant_method"),
            "awq");
  EXPECT_FALSE(Find(R"({"quantization_config":7})").ok());
}

}  // namespace
}  // namespace trireme::weights

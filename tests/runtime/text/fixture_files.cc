#include "tests/runtime/text/fixture_files.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"

namespace trireme::text {
namespace {

bool Exists(const std::string& path) { return std::ifstream(path).good(); }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// One value of a GGUF file, as far as vocabularies need it.
struct GgufValue {
  std::optional<int64_t> integer;
  std::optional<std::string> text;
  std::optional<std::vector<std::string>> texts;
  std::vector<int32_t> integers;
  std::vector<float> floats;
};

class GgufReader {
 public:
  explicit GgufReader(std::string bytes) : bytes_(std::move(bytes)) {}

  std::map<std::string, GgufValue> Read() {
    position_ = 16;
    const uint64_t keys = Take<uint64_t>();
    std::map<std::string, GgufValue> values;
    for (uint64_t i = 0; i < keys; ++i) {
      const std::string key = TakeString();
      values[key] = TakeValue(Take<uint32_t>());
    }
    return values;
  }

 private:
  template <typename T>
  T Take() {
    CHECK_LE(position_ + sizeof(T), bytes_.size());
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::string TakeString() {
    const uint64_t length = Take<uint64_t>();
    CHECK_LE(length, bytes_.size() - position_);
    position_ += length;
    return bytes_.substr(position_ - length, length);
  }

  int64_t TakeInteger(uint32_t type) {
    switch (type) {
      case 0:
      case 7:
        return Take<uint8_t>();
      case 1:
        return Take<int8_t>();
      case 2:
        return Take<uint16_t>();
      case 3:
        return Take<int16_t>();
      case 4:
        return Take<uint32_t>();
      case 5:
        return Take<int32_t>();
      case 10:
        return static_cast<int64_t>(Take<uint64_t>());
      default:
        return Take<int64_t>();
    }
  }

  GgufValue TakeValue(uint32_t type) {
    GgufValue value;
    if (type == 8) {
      value.text = TakeString();
    } else if (type == 9) {
      const uint32_t element_type = Take<uint32_t>();
      const uint64_t count = Take<uint64_t>();
      if (element_type == 8) {
        value.texts.emplace();
      }
      for (uint64_t i = 0; i < count; ++i) {
        if (element_type == 8) {
          value.texts->push_back(TakeString());
        } else if (element_type == 6) {
          value.floats.push_back(Take<float>());
        } else {
          value.integers.push_back(static_cast<int32_t>(TakeInteger(element_type)));
        }
      }
    } else if (type == 6) {
      Take<float>();
    } else if (type == 12) {
      Take<double>();
    } else {
      value.integer = TakeInteger(type);
    }
    return value;
  }

  std::string bytes_;
  size_t position_ = 0;
};

}  // namespace

std::optional<std::string> FindFixture(const std::string& name) {
  const char* folder = std::getenv("TRIREME_FIXTURES");
  for (const std::string& root : {std::string("tests/data"),
                                  std::string(folder == nullptr ? "../shared/fixtures" : folder)}) {
    const std::string path = absl::StrCat(root, "/", name);
    if (Exists(path)) {
      return path;
    }
  }
  std::printf("no fixture %s: this test goes without it\n", name.c_str());
  return std::nullopt;
}

nlohmann::json ReadJson(const std::string& path) { return nlohmann::json::parse(ReadFile(path)); }

VocabularyData ReadVocabulary(const std::string& path) {
  std::map<std::string, GgufValue> values = GgufReader(ReadFile(path)).Read();
  const auto value = [&values](const std::string& key) -> GgufValue& {
    return values[absl::StrCat("tokenizer.", key)];
  };
  const auto boolean = [&value](const std::string& key) -> std::optional<bool> {
    const std::optional<int64_t> integer = value(key).integer;
    return integer.has_value() ? std::optional<bool>(*integer != 0) : std::nullopt;
  };
  VocabularyData data;
  data.model_name = values["general.name"].text.value_or("");
  data.model = value("ggml.model").text.value_or("");
  data.pre_tokenizer = value("ggml.pre").text.value_or("");
  data.tokens = value("ggml.tokens").texts.value_or(std::vector<std::string>());
  data.token_types = value("ggml.token_type").integers;
  data.scores = value("ggml.scores").floats;
  data.merges = value("ggml.merges").texts;
  data.bos_id = value("ggml.bos_token_id").integer;
  data.eos_id = value("ggml.eos_token_id").integer;
  data.eot_id = value("ggml.eot_token_id").integer;
  data.eom_id = value("ggml.eom_token_id").integer;
  data.unknown_id = value("ggml.unknown_token_id").integer;
  data.padding_id = value("ggml.padding_token_id").integer;
  data.add_bos = boolean("ggml.add_bos_token");
  data.add_space_prefix = boolean("ggml.add_space_prefix");
  data.chat_template = value("chat_template").text.value_or("");
  return data;
}

std::vector<std::string> TokenizerFolders() {
  return {"deepseek-coder",
          "deepseek-v3-cut",
          "gemma3-cut",
          "gpt2",
          "llama2-cut",
          "llama2-spm",
          "llama3-cut",
          "mistral-v3-spm",
          "o200k-cut",
          "phi3-spm",
          "qwen2-cut",
          "smollm2",
          "tekken-cut",
          "trained/pre-default",
          "trained/pre-deepseek-coder",
          "trained/pre-deepseek-v3",
          "trained/pre-gpt-2",
          "trained/pre-gpt-4o",
          "trained/pre-llama-bpe",
          "trained/pre-qwen2",
          "trained/pre-qwen35",
          "trained/pre-smollm",
          "trained/pre-tekken",
          "trained/spm-noprefix",
          "trained/spm-prefix"};
}

VocabularyData MakeByteLevelVocabulary(const std::vector<std::string>& merges,
                                       const std::vector<NamedToken>& special_tokens) {
  VocabularyData data;
  data.model = "gpt2";
  data.pre_tokenizer = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.emplace_back();
    AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &data.tokens.back());
  }
  data.merges = merges;
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    data.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  data.token_types.assign(data.tokens.size(), static_cast<int32_t>(TokenType::kNormal));
  for (const NamedToken& token : special_tokens) {
    data.tokens.push_back(token.text);
    data.token_types.push_back(static_cast<int32_t>(token.type));
  }
  return data;
}

}  // namespace trireme::text

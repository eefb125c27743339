#include "tests/support/served_replica.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

namespace trireme {
namespace {

constexpr char kTemplate[] =
    "{%- for message in messages -%}<|im_start|>{{ message.role }}\n{{ message.content "
    "}}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

void AppendUtf8(uint32_t point, std::string* out) {
  if (point < 0x80) {
    out->push_back(static_cast<char>(point));
  } else {  // the alphabet ends below 0x800
    out->push_back(static_cast<char>(0xC0 | (point >> 6)));
    out->push_back(static_cast<char>(0x80 | (point & 0x3F)));
  }
}

// The printable stand-in for each byte in byte-level vocabularies (specs/tokenizers.md).
std::string ByteSpelling(int byte) {
  const auto is_printable = [](int value) {
    return (value >= 33 && value <= 126) || (value >= 161 && value <= 172) ||
           (value >= 174 && value <= 255);
  };
  std::string spelling;
  if (is_printable(byte)) {
    AppendUtf8(static_cast<uint32_t>(byte), &spelling);
    return spelling;
  }
  uint32_t point = 256;
  for (int value = 0; value < byte; ++value) {
    point += is_printable(value) ? 0 : 1;
  }
  AppendUtf8(point, &spelling);
  return spelling;
}

}  // namespace

std::unique_ptr<text::Tokenizer> MakeByteTokenizer() {
  text::VocabularyData data;
  data.model = "gpt2";
  data.pre_tokenizer = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.push_back(ByteSpelling(byte));
    data.token_types.push_back(static_cast<int32_t>(text::TokenType::kNormal));
  }
  for (const char* name : {"<|bos|>", "<|im_start|>", "<|im_end|>"}) {
    data.tokens.push_back(name);
    data.token_types.push_back(static_cast<int32_t>(text::TokenType::kControl));
  }
  data.merges.emplace();
  data.bos_id = kBosId;
  data.eos_id = kTurnEndId;
  data.add_bos = false;
  auto tokenizer = text::Tokenizer::Create(std::move(data));
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
  }
  CHECK(tokenizer.ok());
  return *std::move(tokenizer);
}

ServedReplica::ServedReplica(ServedReplicaOptions options) : options_(std::move(options)) {
  if (options_.with_text) {
    tokenizer_ = MakeByteTokenizer();
    auto chat_template = text::ChatTemplate::Create(kTemplate);
    CHECK(chat_template.ok());
    chat_template_ = *std::move(chat_template);
  }
  controller_ = std::make_unique<FakeController>(options_.controller);
  auto server = serve::Server::Create(options_.server);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
  }
  CHECK(server.ok());
  server_ = *std::move(server);
  if (options_.open) {
    server_->Open(Facade());
  }
  client_ = ServiceClient::Connect(address());
}

serve::ReplicaFacade ServedReplica::Facade() const {
  serve::ReplicaFacade facade;
  facade.controller = controller_.get();
  facade.tokenizer = tokenizer_.get();
  facade.chat_template = chat_template_.get();
  facade.model.id = "fake";
  facade.model.family = "test";
  facade.model.context_length = options_.controller.context;
  facade.model.vocabulary_size = options_.controller.vocabulary;
  facade.model.bos_token = "<|bos|>";
  facade.model.eos_token = "<|im_end|>";
  facade.model.fingerprint = "f1";
  facade.queued_requests_max = options_.controller.queued_requests_max;
  facade.epoch = 7;
  return facade;
}

std::string ServedReplica::address() const { return absl::StrCat("127.0.0.1:", server_->port()); }

const v1::Finished* StreamRecord::finished() const {
  return !events.empty() && events.back().has_finished() ? &events.back().finished() : nullptr;
}

const v1::Accepted* StreamRecord::accepted() const {
  for (const v1::GenerateEvent& event : events) {
    if (event.has_accepted()) {
      return &event.accepted();
    }
  }
  return nullptr;
}

StreamRecord ReadStream(ServiceStream& stream) {
  StreamRecord record;
  std::string bytes;
  int finished_count = 0;
  while (stream.Read(&bytes)) {
    v1::GenerateEvent event;
    CHECK(event.ParseFromString(bytes));
    if (event.seq() != record.events.size() + 1) {
      record.broken_rules.push_back(
          absl::StrCat("seq ", event.seq(), " after ", record.events.size(), " events"));
    }
    if (finished_count > 0) {
      record.broken_rules.push_back("an event after Finished");
    }
    if (event.has_chunk()) {
      const v1::Chunk& chunk = event.chunk();
      if (record.accepted() == nullptr) {
        record.broken_rules.push_back("a chunk before Accepted");
      }
      if (!IsValidUtf8(chunk.text())) {
        record.broken_rules.push_back("a text that is not UTF-8");
      }
      record.token_ids.resize(std::max<size_t>(record.token_ids.size(), chunk.choice() + 1));
      record.texts.resize(record.token_ids.size());
      std::vector<int32_t>& ids = record.token_ids[chunk.choice()];
      if (chunk.token_ids_size() > 0 &&
          chunk.first_position() != static_cast<int64_t>(ids.size())) {
        record.broken_rules.push_back("positions with a gap");
      }
      ids.insert(ids.end(), chunk.token_ids().begin(), chunk.token_ids().end());
      record.texts[chunk.choice()] += chunk.text();
    }
    finished_count += event.has_finished() ? 1 : 0;
    record.events.push_back(std::move(event));
  }
  record.result = stream.Finish();
  if (record.result.ok() != (finished_count == 1)) {
    record.broken_rules.push_back("Finished and OK do not go together");
  }
  return record;
}

StreamRecord Generate(ServiceClient& client, const v1::GenerateRequest& request,
                      absl::Duration deadline) {
  return ReadStream(*client.Open(kGenerate, request.SerializeAsString(), deadline));
}

v1::GenerateRequest TokenRequest(int64_t max_tokens) {
  v1::GenerateRequest request;
  for (const int32_t id : {1, 2, 3}) {
    request.mutable_tokens()->add_token_ids(id);
  }
  request.mutable_stopping()->set_max_tokens(max_tokens);
  return request;
}

}  // namespace trireme

// A running server over a FakeController, with a byte-level tokenizer and a small chat template,
// and a client connected to it. For tests of the service.
#ifndef TRIREME_TESTS_SUPPORT_SERVED_REPLICA_H_
#define TRIREME_TESTS_SUPPORT_SERVED_REPLICA_H_

#include <memory>
#include <string>
#include <vector>

#include "inference.pb.h"
#include "runtime/serve/server.h"
#include "tests/support/fake_controller.h"
#include "tests/support/service_client.h"

namespace trireme {

inline constexpr char kGenerate[] = "/trireme.v1.Inference/Generate";

// 256 tokens of one byte each (the id is the byte), then <|bos|>, <|im_start|> and <|im_end|>.
std::unique_ptr<text::Tokenizer> MakeByteTokenizer();
inline constexpr int32_t kBosId = 256;
inline constexpr int32_t kTurnStartId = 257;
inline constexpr int32_t kTurnEndId = 258;

struct ServedReplicaOptions {
  FakeControllerOptions controller;
  serve::ServerOptions server;
  bool open = true;
  bool with_text = true;
};

class ServedReplica {
 public:
  explicit ServedReplica(ServedReplicaOptions options = {});

  // What Open gives to the server.
  serve::ReplicaFacade Facade() const;

  FakeController& controller() { return *controller_; }
  serve::Server& server() { return *server_; }
  ServiceClient& client() { return *client_; }
  std::string address() const;

 private:
  const ServedReplicaOptions options_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<text::ChatTemplate> chat_template_;
  std::unique_ptr<FakeController> controller_;
  std::unique_ptr<serve::Server> server_;
  std::unique_ptr<ServiceClient> client_;
};

// What came of one Generate, with the rules of every stream checked on the way (seq from 1 without
// gaps, Accepted before the first chunk, exactly one Finished and only before OK, valid UTF-8).
struct StreamRecord {
  std::vector<v1::GenerateEvent> events;
  std::vector<std::vector<int32_t>> token_ids;  // [choices]
  std::vector<std::string> texts;               // [choices]
  CallResult result;
  std::vector<std::string> broken_rules;  // must be empty

  const v1::Finished* finished() const;
  const v1::Accepted* accepted() const;
};

StreamRecord ReadStream(ServiceStream& stream);
StreamRecord Generate(ServiceClient& client, const v1::GenerateRequest& request,
                      absl::Duration deadline = absl::Seconds(30));

// A request for `max_tokens` tokens after the prompt [1, 2, 3].
v1::GenerateRequest TokenRequest(int64_t max_tokens);

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_SERVED_REPLICA_H_

#include "runtime/serve/unary_call.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

constexpr char kTokenize[] = "/trireme.v1.Inference/Tokenize";

TEST(UnaryCall, AnswersWithTheHandlersBytesOrStatus) {
  ServedReplica replica;
  v1::TokenizeRequest request;
  std::string bytes;
  EXPECT_EQ(replica.client().Call(kTokenize, request.SerializeAsString(), &bytes).reason,
            "BAD_PARAMETER");
  request.set_text("a");
  EXPECT_TRUE(replica.client().Call(kTokenize, request.SerializeAsString(), &bytes).ok());
}

TEST(UnaryCall, ManyAtOnceAreAllAnswered) {
  ServedReplica replica;
  std::vector<std::thread> threads;
  std::vector<int> answered(8);
  for (size_t index = 0; index < answered.size(); ++index) {
    threads.emplace_back([&, index] {
      const auto client = ServiceClient::Connect(replica.address());
      for (int call = 0; call < 50; ++call) {
        v1::TokenizeRequest request;
        request.set_text(absl::StrCat("text ", index, " ", call));
        std::string bytes;
        v1::TokenizeResponse response;
        if (client->Call(kTokenize, request.SerializeAsString(), &bytes).ok() &&
            response.ParseFromString(bytes) &&
            response.token_ids_size() == static_cast<int>(request.text().size())) {
          ++answered[index];
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(answered, std::vector<int>(8, 50));
}

}  // namespace
}  // namespace trireme::serve

#include "runtime/serve/generate_kind.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "inference.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/prompt_text.h"
#include "runtime/serve/validate_request.h"
#include "runtime/serve/wire_values.h"

namespace trireme::serve {
namespace {

class GenerateKind final : public StreamKind {
 public:
  explicit GenerateKind(Door* door) : door_(door) {}

  bool IsQuick(absl::string_view request_bytes) const override {
    v1::GenerateRequest message;
    return request_bytes.size() <= kQuickBytesMax &&
           ParseMessage(request_bytes, door_->options().request_bytes_max, &message).ok() &&
           message.has_tokens();
  }

  absl::StatusOr<PreparedStream> Prepare(absl::string_view request_bytes,
                                         const ReplicaFacade& replica) override {
    v1::GenerateRequest message;
    RETURN_IF_ERROR(ParseMessage(request_bytes, door_->options().request_bytes_max, &message));
    ASSIGN_OR_RETURN(validated_, ValidateGenerate(message, replica.model));
    RETURN_IF_ERROR(MakePrompt(message, replica));
    replica_ = &replica;
    schedule::Request& request = validated_.request;
    PreparedStream prepared;
    prepared.resumable = !request.id.empty();
    if (request.id.empty()) {
      request.id = door_->MakeRequestId();
    }
    if (!validated_.seed_given) {
      request.sampling.seed = door_->MakeSeed();
    }
    prepared.live_id = request.id;
    for (int64_t choice = 0; choice < validated_.choices; ++choice) {
      prepared.requests.push_back(request);
      prepared.requests.back().choice = static_cast<uint32_t>(choice);
      if (validated_.choices > 1) {
        // '#' is in no request id, so no other request has this one.
        prepared.requests.back().id = absl::StrCat(request.id, "#", choice);
      }
    }
    return prepared;
  }

  std::string QueuedEvent(uint64_t seq, int64_t position) override {
    v1::GenerateEvent event;
    event.set_seq(seq);
    event.mutable_queued()->set_position(position);
    return event.SerializeAsString();
  }

  std::string AcceptedEvent(uint64_t seq, absl::string_view fingerprint) override {
    const schedule::Request& request = validated_.request;
    v1::GenerateEvent event;
    event.set_seq(seq);
    v1::Accepted* accepted = event.mutable_accepted();
    accepted->set_request_id(request.id);
    accepted->set_model(replica_->model.id);
    accepted->set_fingerprint(fingerprint.empty() ? replica_->model.fingerprint
                                                  : std::string(fingerprint));
    accepted->set_prompt_tokens(static_cast<int64_t>(request.prompt.size()));
    SetSampling(request.sampling, accepted->mutable_sampling());
    accepted->mutable_sampling()->set_seed(request.sampling.seed);
    accepted->mutable_sampling()->set_n(validated_.choices);
    SetStopping(request.stopping, accepted->mutable_stopping());
    return event.SerializeAsString();
  }

  std::string TokensEvent(uint64_t seq, const schedule::Request& request,
                          const engine::Delta& delta) override {
    v1::GenerateEvent event;
    event.set_seq(seq);
    v1::Chunk* chunk = event.mutable_chunk();
    chunk->set_choice(request.choice);
    chunk->set_first_position(delta.first_position);
    chunk->set_tokens(static_cast<int64_t>(delta.token_ids.size()));
    chunk->set_text(delta.text);
    if (validated_.want_token_ids) {
      chunk->mutable_token_ids()->Add(delta.token_ids.begin(), delta.token_ids.end());
    }
    if (validated_.want_bytes && replica_->tokenizer != nullptr) {
      for (const int32_t id : delta.token_ids) {
        const absl::string_view bytes = replica_->tokenizer->TokenBytes(id);
        chunk->mutable_bytes()->append(bytes.data(), bytes.size());
      }
    }
    for (size_t index = 0; index < delta.logprobs.size(); ++index) {
      v1::TokenLogprob* logprob = chunk->add_logprobs();
      logprob->set_token_id(delta.token_ids[index]);
      logprob->set_logprob(delta.logprobs[index]);
    }
    return event.SerializeAsString();
  }

  bool EndsWithTextTail() const override { return false; }

  std::string ChoiceFinishedEvent(uint64_t seq, const schedule::Request& request,
                                  const engine::Ending& ending,
                                  absl::string_view /*text_tail*/) override {
    v1::GenerateEvent event;
    event.set_seq(seq);
    SetChoiceFinished(request, ending, event.mutable_choice_finished());
    return event.SerializeAsString();
  }

  std::string FinishedEvent(uint64_t seq, absl::Span<const engine::Ending> endings) override {
    v1::GenerateEvent event;
    event.set_seq(seq);
    SetUsage(endings, event.mutable_finished()->mutable_usage());
    SetTimings(endings, event.mutable_finished()->mutable_timings());
    SetDisruptions(endings, event.mutable_finished());
    return event.SerializeAsString();
  }

 private:
  absl::Status MakePrompt(const v1::GenerateRequest& message, const ReplicaFacade& replica) {
    absl::string_view field = "tokens.token_ids";
    if (message.has_text()) {
      field = "text";
      ASSIGN_OR_RETURN(validated_.request.prompt,
                       EncodeText(replica, message.text(), message.text_options()));
    } else if (message.has_chat()) {
      field = "chat";
      ASSIGN_OR_RETURN(RenderedChat rendered, EncodeChat(replica, message.chat()));
      validated_.request.prompt = std::move(rendered.token_ids);
    }
    return CheckPrompt(field, validated_.request.prompt, replica.model);
  }

  Door* const door_;
  const ReplicaFacade* replica_ = nullptr;
  ValidatedGenerate validated_;
};

}  // namespace

std::unique_ptr<StreamKind> MakeGenerateKind(Door* door) {
  return std::make_unique<GenerateKind>(door);
}

}  // namespace trireme::serve

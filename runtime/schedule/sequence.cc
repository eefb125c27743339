#include "runtime/schedule/sequence.h"

#include <utility>

#include "runtime/base/check.h"

namespace trireme::schedule {

Sequence::Sequence(Request request, SequencePurpose purpose)
    : request_(std::move(request)),
      purpose_(purpose),
      tokens_(std::move(request_.prompt)),
      prompt_tokens_(static_cast<int32_t>(tokens_.size())) {
  CHECK_GT(prompt_tokens_, 0);
  tokens_.insert(tokens_.end(), request_.emitted.begin(), request_.emitted.end());
  request_.prompt = {};
}

}  // namespace trireme::schedule

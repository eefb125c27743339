// The codec against the classes that protoc generates from proto/step.proto.
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/engine/step.h"
#include "step.pb.h"

namespace trireme::engine {
namespace {

namespace wire = trireme::step::v1;

// 32 random bits a call.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

int32_t AnyInteger(Random& random) {
  return random() % 3 == 0 ? static_cast<int32_t>(random()) : static_cast<int32_t>(random() % 200);
}

float AnyFloat(Random& random) {
  return random() % 4 == 0 ? 0.0f : static_cast<float>(random()) / 1e6f - 1000;
}

template <typename Field>
void FillBoth(Random& random, std::vector<int32_t>* ours, Field* theirs) {
  for (uint32_t count = random() % 40; count > 0; --count) {
    ours->push_back(AnyInteger(random));
    theirs->Add(ours->back());
  }
}

struct PlanPair {
  StepPlan ours;
  wire::StepPlan theirs;
};

PlanPair AnyPlan(Random& random) {
  PlanPair pair;
  StepPlan& ours = pair.ours;
  wire::StepPlan& theirs = pair.theirs;
  const bool shutdown = random() % 4 == 0;
  ours.kind = shutdown ? PlanKind::kShutdown : PlanKind::kCompute;
  theirs.set_kind(shutdown ? wire::StepPlan::KIND_SHUTDOWN : wire::StepPlan::KIND_COMPUTE);
  ours.step = random() % 3 == 0 ? 0 : (static_cast<uint64_t>(random()) << 20);
  theirs.set_step(ours.step);
  FillBoth(random, &ours.token_ids, theirs.mutable_token_ids());
  FillBoth(random, &ours.positions, theirs.mutable_positions());
  FillBoth(random, &ours.slots, theirs.mutable_slots());
  FillBoth(random, &ours.block_tables, theirs.mutable_block_tables());
  FillBoth(random, &ours.logit_rows, theirs.mutable_logit_rows());
  for (uint32_t count = random() % 5; count > 0; --count) {
    const PlanSequence sequence = {AnyInteger(random), AnyInteger(random), AnyInteger(random),
                                   AnyInteger(random), AnyInteger(random)};
    ours.sequences.push_back(sequence);
    wire::PlanSequence* other = theirs.add_sequences();
    other->set_first_row(sequence.first_row);
    other->set_rows(sequence.rows);
    other->set_first_position(sequence.first_position);
    other->set_first_block(sequence.first_block);
    other->set_block_count(sequence.block_count);
  }
  for (uint32_t count = random() % 5; count > 0; --count) {
    PlanSample sample;
    sample.logit_index = AnyInteger(random);
    sample.choice = random();
    sample.position = random() % 2 == 0 ? 0 : (static_cast<int64_t>(random()) << 8);
    sample.sampling = {.temperature = AnyFloat(random),
                       .top_k = AnyInteger(random),
                       .top_p = AnyFloat(random),
                       .min_p = -0.0f,
                       .seed = static_cast<uint64_t>(random()) << 32 | random()};
    sample.want_logprob = random() % 2 == 0;
    ours.samples.push_back(sample);
    wire::PlanSample* other = theirs.add_samples();
    other->set_logit_index(sample.logit_index);
    other->set_choice(sample.choice);
    other->set_position(sample.position);
    other->set_temperature(sample.sampling.temperature);
    other->set_top_k(sample.sampling.top_k);
    other->set_top_p(sample.sampling.top_p);
    other->set_min_p(sample.sampling.min_p);
    other->set_seed(sample.sampling.seed);
    other->set_want_logprob(sample.want_logprob);
  }
  ours.want_logits = random() % 2 == 0;
  theirs.set_want_logits(ours.want_logits);
  return pair;
}

TEST(StepCodecTest, WritesAndReadsPlansAsProtobufDoes) {
  Random random(1);
  StepPlan decoded;
  std::string bytes;
  for (int round = 0; round < 300; ++round) {
    const PlanPair pair = AnyPlan(random);
    EncodeStepPlan(pair.ours, &bytes);
    ASSERT_EQ(bytes, pair.theirs.SerializeAsString());
    ASSERT_EQ(DecodeStepPlan(bytes, &decoded), absl::OkStatus());
    std::string again;
    EncodeStepPlan(decoded, &again);
    ASSERT_EQ(again, bytes);
    ASSERT_EQ(decoded.token_ids, pair.ours.token_ids);
    ASSERT_EQ(decoded.samples.size(), pair.ours.samples.size());
    for (size_t index = 0; index < decoded.samples.size(); ++index) {
      ASSERT_EQ(decoded.samples[index].sampling.top_p, pair.ours.samples[index].sampling.top_p);
      ASSERT_EQ(decoded.samples[index].position, pair.ours.samples[index].position);
    }
  }
}

TEST(StepCodecTest, WritesAndReadsResultsAsProtobufDoes) {
  Random random(2);
  StepResult decoded;
  std::string bytes;
  for (int round = 0; round < 200; ++round) {
    StepResult ours;
    wire::StepResult theirs;
    ours.step = random();
    theirs.set_step(ours.step);
    if (round % 3 == 0) {
      ours.status = absl::DataLossError("rank 2: weights changed");
      theirs.set_status_code(15);
      theirs.set_status_message("rank 2: weights changed");
    }
    FillBoth(random, &ours.token_ids, theirs.mutable_token_ids());
    for (uint32_t count = random() % 40; count > 0; --count) {
      ours.logits.push_back(AnyFloat(random));
      theirs.add_logits(ours.logits.back());
      ours.logprobs.push_back(AnyFloat(random));
      theirs.add_logprobs(ours.logprobs.back());
    }
    for (uint32_t count = random() % 3; count > 0; --count) {
      ours.faults.push_back({AnyInteger(random), AnyInteger(random)});
      wire::StepFault* other = theirs.add_faults();
      other->set_sequence(ours.faults.back().sequence);
      other->set_place(ours.faults.back().place);
    }
    EncodeStepResult(ours, &bytes);
    ASSERT_EQ(bytes, theirs.SerializeAsString());
    ASSERT_EQ(DecodeStepResult(bytes, &decoded), absl::OkStatus());
    ASSERT_EQ(decoded.step, ours.step);
    ASSERT_EQ(decoded.status, ours.status);
    ASSERT_EQ(decoded.token_ids, ours.token_ids);
    ASSERT_EQ(decoded.logprobs, ours.logprobs);
    ASSERT_EQ(decoded.logits, ours.logits);
    ASSERT_EQ(decoded.faults.size(), ours.faults.size());
    for (size_t index = 0; index < ours.faults.size(); ++index) {
      ASSERT_EQ(decoded.faults[index].sequence, ours.faults[index].sequence);
      ASSERT_EQ(decoded.faults[index].place, ours.faults[index].place);
    }
  }
}

TEST(StepCodecTest, RefusesTruncatedMessagesAndUnknownKinds) {
  Random random(3);
  const PlanPair pair = AnyPlan(random);
  std::string bytes;
  EncodeStepPlan(pair.ours, &bytes);
  StepPlan plan;
  size_t refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A cut between two fields is a message of its own; every other cut is an error.
    const bool whole = wire::StepPlan().ParseFromString(bytes.substr(0, size));
    const bool has_kind = size >= 2;
    EXPECT_EQ(DecodeStepPlan(absl::string_view(bytes).substr(0, size), &plan).ok(),
              whole && has_kind)
        << size;
    refused += whole ? 0 : 1;
  }
  EXPECT_GT(refused, bytes.size() / 2);

  wire::StepPlan unknown;
  unknown.set_kind(static_cast<wire::StepPlan::Kind>(9));
  EXPECT_FALSE(DecodeStepPlan(unknown.SerializeAsString(), &plan).ok());
}

TEST(StepCodecTest, NeverAllocatesMoreThanTheMessageHolds) {
  // token_ids said to be 2 GiB long.
  const std::string claim = std::string("\x08\x01\x1A\xFC\xFF\xFF\xFF\x07", 8) + "abcd";
  StepPlan plan;
  EXPECT_FALSE(DecodeStepPlan(claim, &plan).ok());
  EXPECT_LT(plan.token_ids.capacity(), 100u);
}

TEST(StepCodecTest, SurvivesMutatedBytesAndAgreesWithProtobufOnThem) {
  Random random(4);
  StepPlan plan;
  StepResult result;
  const StepLimits limits = {
      .tokens = 64, .sequences = 8, .logit_rows = 8, .context = 64, .blocks = 10};
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    EncodeStepPlan(AnyPlan(random).ours, &bytes);
    for (uint32_t count = 1 + random() % 4; count > 0 && !bytes.empty(); --count) {
      switch (random() % 3) {
        case 0:
          bytes[random() % bytes.size()] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(random() % bytes.size(), 1 + random() % 4);
          break;
        default:
          bytes.insert(random() % bytes.size(), 1, static_cast<char>(random()));
      }
    }
    const bool decoded = DecodeStepPlan(bytes, &plan).ok();
    wire::StepPlan theirs;
    const bool parsed = theirs.ParseFromString(bytes);
    const bool kind_known = theirs.kind() == 1 || theirs.kind() == 2;
    // Protobuf also takes arrays that are not packed; nobody of ours sends those.
    if (decoded) {
      ASSERT_TRUE(parsed && kind_known);
      ValidateStepPlan(plan, limits, 100).IgnoreError();
    }
    DecodeStepResult(bytes, &result).IgnoreError();
  }
}

}  // namespace
}  // namespace trireme::engine

#include "runtime/serve/request_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RequestRecord RecordOf(const std::string& id) {
  RequestRecord record;
  record.id = id;
  record.finish = "eos";
  record.usage.prompt_tokens = 10;
  record.usage.generated_tokens = 5;
  record.queue = absl::Milliseconds(10);
  record.first_token = absl::Milliseconds(30);
  record.total = absl::Milliseconds(430);
  return record;
}

TEST(RequestJournalTest, TimesOfAStreamAddUp) {
  Metrics metrics;
  RequestJournal journal(&metrics, 10);
  journal.Add(RecordOf("a"));
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("trireme_requests_total{outcome=\"ok\"} 1"));
  EXPECT_THAT(text, HasSubstr("trireme_prompt_tokens_total 10"));
  EXPECT_THAT(text, HasSubstr("trireme_generated_tokens_total 5"));
  // queue 10 ms, prefill 30 - 10 ms, decode 430 - 30 ms over 4 tokens after the first.
  EXPECT_THAT(text, HasSubstr("trireme_queue_seconds_sum 0.01\n"));
  EXPECT_THAT(text, HasSubstr("trireme_prefill_seconds_sum 0.02\n"));
  EXPECT_THAT(text, HasSubstr("trireme_decode_seconds_sum 0.4\n"));
  EXPECT_THAT(text, HasSubstr("trireme_tpot_seconds_sum 0.1\n"));
  EXPECT_THAT(text, HasSubstr("trireme_e2e_seconds_sum 0.43\n"));
}

TEST(RequestJournalTest, LatenciesAreOfStreamsWithATokenOnly) {
  RequestJournal journal(nullptr, 10);
  RequestRecord refused = RecordOf("");
  refused.first_token.reset();
  journal.Add(refused);
  EXPECT_EQ(journal.latency().streams, 0);
  journal.Add(RecordOf("a"));
  RequestRecord silent = RecordOf("b");
  silent.first_token.reset();
  silent.choices = 0;  // it ended before anybody counted them
  journal.Add(silent);
  EXPECT_EQ(journal.latency().streams, 1);
  EXPECT_EQ(journal.latency().first_token_p50, absl::Milliseconds(30));
  EXPECT_EQ(journal.latency().token_p99, absl::Milliseconds(100));  // 430 - 30 over 4
}

TEST(RequestJournalTest, AStreamWithoutATokenHasNoFirstTokenTime) {
  Metrics metrics;
  RequestJournal journal(&metrics, 10);
  RequestRecord record = RecordOf("a");
  record.first_token.reset();
  record.status = WithReason(absl::UnavailableError("gone"), kReasonRankLost);
  journal.Add(record);
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_requests_total{outcome=\"RANK_LOST\"} 1"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("trireme_ttft_seconds")));
}

TEST(RequestJournalTest, FindsARequestAndItsAttempts) {
  RequestJournal journal(nullptr, 10);
  journal.Add(RecordOf("a@1"));
  journal.Add(RecordOf("ab@1"));
  journal.Add(RecordOf("a@2"));
  const auto found = journal.Find("a");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].id, "a@2");
  EXPECT_EQ(found[1].id, "a@1");
  EXPECT_TRUE(journal.Find("b").empty());
}

TEST(RequestJournalTest, ForgetsTheOldest) {
  RequestJournal journal(nullptr, 2);
  for (int index = 0; index < 3; ++index) {
    journal.Add(RecordOf(absl::StrCat("r", index)));
  }
  EXPECT_TRUE(journal.Find("r0").empty());
  EXPECT_EQ(journal.Find("r1").size(), 1u);
}

TEST(RequestJournalTest, OneLineForEachRequest) {
  RequestJournal journal(nullptr, 2);
  ::testing::internal::CaptureStderr();
  journal.Add(RecordOf("a"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("request id=a outcome=ok choices=1 prompt_tokens=10 cached_tokens=0 "
                        "generated_tokens=5 queue_ms=10.0 total_ms=430.0 first_token_ms=30.0 "
                        "finish=eos"));
}

}  // namespace
}  // namespace trireme::serve

#!/usr/bin/python3
"""Gemma 3 270M, the base model, against an independent float64 reference: every assertion of
tests/data/real/README.md, through the command line.

Five weight formats in one file (Q4_K, Q5_0, Q6_K, Q8_0, F32), windows of 512 tokens in 15 of 18
layers (the prompt "window" is longer), two ropes, a vocabulary of 262144, no chat template.
"""

import command_line
from command_line import USAGE, gemma3_model, must_run, run
from reference_comparison import FLOAT32, FLOAT32_BF16_KV, FLOAT32_F16_KV, PublishedModelTest


class Gemma3Test(PublishedModelTest):
    fixtures_name = "real"

    @classmethod
    def setUpClass(cls):
        cls.model = gemma3_model()
        super().setUpClass()

    def assert_follows_the_reference(self, setting):
        self.assert_scores_within(setting)
        self.assert_answers_follow(setting.flags, setting.margin)
        self.assert_free_runs_follow(setting.flags, setting.margin)

    def test_token_ids_are_the_reference_ones(self):
        self.assert_token_ids_are_the_reference_ones()

    def test_detokenizing_gives_the_text_back(self):
        self.assert_ids_give_the_texts_back(first=1)  # behind the beginning-of-sequence token

    def test_float32_follows_the_reference(self):
        self.assert_follows_the_reference(FLOAT32)

    def test_float_activations_with_f16_kv_follow_the_reference(self):
        self.assert_follows_the_reference(FLOAT32_F16_KV)

    def test_float_activations_with_bf16_kv_follow_the_reference(self):
        self.assert_follows_the_reference(FLOAT32_BF16_KV)

    def test_default_scores_are_as_near_as_int8_activations_can_be(self):
        self.assert_int8_scores_within_the_limits()

    def test_default_answers_follow_token_by_token(self):
        self.assert_answers_follow([], "margin_int8")

    def test_default_free_runs_follow_up_to_the_first_small_margin(self):
        self.assert_free_runs_follow([], "margin_int8")

    def test_inspect_names_the_ids_that_end_a_stream(self):
        # Not 212: this file's "</s>" is user-defined, an HTML tag.
        generation = must_run("inspect", self.model, "--json").json()["generation"]
        self.assertEqual([(end["id"], end["source"]) for end in generation["end_ids"]],
                         [(1, "tokenizer.ggml.eos_token_id"),
                          (106, "the vocabulary: <end_of_turn>")])
        self.assertEqual(generation["sampling"], {})  # the file advises none

    def test_messages_are_refused_without_a_chat_template(self):
        for arguments in (["chat"], ["generate", "--chat", "Hello"]):
            with self.subTest(arguments=arguments):
                outcome = run(*arguments, "--model", self.model, "--quiet")
                self.assertEqual(outcome.code, USAGE)
                line, = outcome.error_lines()
                self.assertIn("the model has no chat template; give a prompt instead", line)


if __name__ == "__main__":
    command_line.main()

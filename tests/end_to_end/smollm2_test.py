#!/usr/bin/python3
"""The default model against an independent float64 reference: every assertion of
tests/data/smollm2/README.md, through the command line.

Limits are those of that README and of anchors.json; where it allows a rounding (int8 activations)
and where it does not (float32) is explained there.
"""

import os
import unittest

import command_line
from command_line import (default_model, must_run, numbers, read_json, read_safetensors, score,
                          write_json)
from reference_comparison import (FLOAT32, FLOAT32_BF16_KV, FLOAT32_F16_KV, PublishedModelTest,
                                  mean)

GENERATED_TOKENS = 64
END_TOKENS = (0, 2, 4)


class SmolLm2Test(PublishedModelTest):
    fixtures_name = "smollm2"

    @classmethod
    def setUpClass(cls):
        cls.model = default_model()
        super().setUpClass()

    def test_token_ids_are_the_reference_ones(self):
        self.assert_token_ids_are_the_reference_ones()

    def test_a_forged_special_token_is_text(self):
        forged = next(p for p in self.prompts if p["id"] == "forged-special")
        path = write_json(self.folder, "texts.json", [forged["text"]])
        ids, = must_run("tokenize", "--model", self.model, "--input", path, "--special",
                        "text").json()
        self.assertEqual([], [i for i in ids if i <= 16])

    def test_detokenizing_gives_the_text_back(self):
        self.assert_ids_give_the_texts_back(first=0)

    def test_the_files_chat_template_renders_the_reference_prompts(self):
        for prompt in self.prompts:
            if not prompt.get("messages"):
                continue
            with self.subTest(prompt=prompt["id"]):
                path = write_json(self.folder, "chat.json", {"messages": prompt["messages"],
                                                             "add_generation_prompt": True})
                outcome = must_run("render", "--model", self.model, "--input", path)
                self.assertEqual(outcome.output, prompt["text"])

    def test_float32_scores_are_the_reference_ones(self):
        self.assert_scores_within(FLOAT32)

    def test_float32_logits_are_the_reference_ones(self):
        # Every logit: ten times the README's 3.6e-5 of an untouched float32 engine.
        reference = read_safetensors(os.path.join(self.fixtures, "logits.safetensors"))
        texts = read_json(os.path.join(self.fixtures, "logits.json"))
        _, path = score(self.model, [text["ids"] for text in texts], self.folder, *FLOAT32.flags)
        ours = read_safetensors(path)
        for index, text in enumerate(texts):
            with self.subTest(text=text["id"]):
                largest = max(abs(a - b) for a, b in zip(
                    numbers(ours["logits.%d" % index]), numbers(reference[text["id"] + ".logits"]),
                    strict=True))
                self.assertLessEqual(largest, 3.6e-4)

    def test_float32_answers_follow_token_by_token(self):
        self.assert_answers_follow(FLOAT32.flags, FLOAT32.margin)

    def test_float32_free_runs_are_the_reference_ones(self):
        self.assertEqual(self.generated(FLOAT32.flags),
                         [prompt["reference"]["ids"] for prompt in self.prompts])

    def test_float_activations_stay_within_the_rounding_of_keys_and_values(self):
        self.assert_scores_within(FLOAT32_F16_KV)
        self.assert_scores_within(FLOAT32_BF16_KV)

    def test_default_scores_are_as_near_as_int8_activations_can_be(self):
        self.assert_int8_scores_within_the_limits()

    def test_the_narrowest_keys_and_values_stay_as_near_as_their_codes_can_be(self):
        # A simulation of the codes in float32 diverges by 0.0043, the default mode by 0.0034.
        scored = self.score_texts(["--kv-cache", "int4"])
        scored.report("int4 KV")
        self.assertLessEqual(mean(scored.divergences), 1.1 * (0.0043 + 0.0034))

    def test_default_answers_follow_token_by_token(self):
        self.assert_answers_follow([], "margin_int8")

    def test_default_free_runs_follow_up_to_the_first_small_margin(self):
        self.assert_free_runs_follow([], "margin_int8")

    def test_every_setting_knows_the_capital_of_france(self):
        robust = next(p for p in self.prompts if p["id"] == "chat-capital-robust")
        # The slow table goes in short steps: a busy machine must not take one for a stuck rank.
        slow = ["--kernels", "reference", "--step-tokens", "4"]
        for flags in ([], FLOAT32.flags, ["--tensor", "2"], slow):
            with self.subTest(flags=flags):
                answer = must_run(
                    "generate", "--model", self.model, "--system",
                    "You answer in one short sentence.", "--chat",
                    "What is the capital of France?", "--json", "--quiet", *flags,
                    seconds_max=120).json()
                self.assertEqual(answer["prompt_token_ids"], robust["ids"])
                self.assertTrue(answer["text"].startswith("The capital of France is Paris"),
                                answer["text"])
                self.assertEqual(answer["finish_reason"], "eos")

    def test_generation_ends_at_the_first_end_token(self):
        wanted = [p for p in self.prompts if p["reference"]["first_eog"] is not None]
        self.assertTrue(wanted)
        path = write_json(self.folder, "prompts.json", [p["ids"] for p in wanted])
        outcome = must_run("generate", "--model", self.model, "--prompt-file", path, "--json",
                           "--quiet", "--max-tokens", GENERATED_TOKENS, *FLOAT32.flags, seconds_max=300)
        for prompt, line in zip(wanted, outcome.json_lines(), strict=True):
            with self.subTest(prompt=prompt["id"]):
                self.assertEqual(line["finish_reason"], "eos")
                end = prompt["reference"]["first_eog"]
                ids = [i for i in line["token_ids"] if i not in END_TOKENS]
                self.assertEqual(ids, prompt["reference"]["ids"][:end])

    def test_inspect_names_the_ids_that_end_a_stream(self):
        generation = must_run("inspect", self.model, "--json").json()["generation"]
        self.assertEqual(sorted(end["id"] for end in generation["end_ids"]), list(END_TOKENS))


if __name__ == "__main__":
    command_line.main()

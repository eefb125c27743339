#!/usr/bin/python3
"""The default model against an independent float64 reference: every assertion of
tests/data/smollm2/README.md, through the command line.

Limits are those of that README and of anchors.json; where it allows a rounding (int8 activations)
and where it does not (float32) is explained there.
"""

import math
import os
import tempfile
import unittest

import command_line
from command_line import (DATA, default_model, generate, must_run, numbers, read_json,
                          read_safetensors, score, write_json)

FIXTURES = os.path.join(DATA, "smollm2")
GENERATED_TOKENS = 64
FLOAT32 = ["--activations", "float32", "--kv-cache", "f32"]
END_TOKENS = (0, 2, 4)


def mean(values):
    return sum(values) / len(values)


def divergence_of_top(reference_logits, reference_log_sum, engine_logits, engine_log_sum):
    """KL(reference || engine) over the reference's top ids and the rest as one bucket."""
    total, rest, engine_rest = 0.0, 1.0, 1.0
    for ours, theirs in zip(engine_logits, reference_logits):
        log_p = theirs - reference_log_sum
        log_q = ours - engine_log_sum
        p = math.exp(log_p)
        total += p * (log_p - log_q)
        rest -= p
        engine_rest -= math.exp(log_q)
    # Stored log-sums are float32, so a rest below 1e-6 is rounding; its share is left out.
    if rest > 1e-6 and engine_rest > 1e-6:
        total += rest * math.log(rest / engine_rest)
    return total


class Scored:
    """What `score` says about texts, put beside the reference."""

    def __init__(self, texts, sequences, logits, top):
        self.rows = []          # (margin, reference argmax, our argmax)
        self.differences = []   # of log-probabilities of the next token
        self.divergences = []
        for index, (text, ours) in enumerate(zip(texts, sequences)):
            self.rows += zip(text["margin"], text["argmax"], ours["argmax"])
            self.differences += [abs(a - b) for a, b in
                                 zip(text["next_logprob"], ours["logprobs"], strict=True)]
            if top:
                self.add_divergences(text, ours, logits["logits.%d" % index], top)

    def add_divergences(self, text, ours, tensor, top):
        _, (_, vocabulary), data = tensor
        values = data.cast("f")
        ids = numbers(top[text["id"] + ".top_ids"])
        logits = numbers(top[text["id"] + ".top_logits"])
        log_sums = numbers(top[text["id"] + ".logsumexp"])
        count = len(ids) // len(text["ids"])
        for position, logprob in enumerate(ours["logprobs"]):
            row = position * vocabulary
            # log p = logit - log sum, so the log sum needs no pass over the vocabulary.
            log_sum = values[row + text["ids"][position + 1]] - logprob
            span = slice(position * count, (position + 1) * count)
            self.divergences.append(divergence_of_top(
                logits[span], log_sums[position], [values[row + i] for i in ids[span]], log_sum))

    def wrong_above(self, margin):
        return sum(1 for row in self.rows if row[0] >= margin and row[1] != row[2])

    def agreement(self):
        return mean([row[1] == row[2] for row in self.rows])

    def report(self, mode):
        print("\n%s: %d positions, top-1 equal %.4f, largest margin where not %.4f, "
              "|d logprob| mean %.3g max %.3g, KL %.4g" %
              (mode, len(self.rows), self.agreement(),
               max([row[0] for row in self.rows if row[1] != row[2]], default=0),
               mean(self.differences), max(self.differences),
               mean(self.divergences) if self.divergences else math.nan))


class SmolLm2Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = default_model()
        cls.prompts = read_json(os.path.join(FIXTURES, "prompts.json"))
        cls.texts = read_json(os.path.join(FIXTURES, "score.json"))
        cls.limits = read_json(os.path.join(FIXTURES, "anchors.json"))["limits"]

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def score_texts(self, flags):
        sequences, path = score(self.model, [text["ids"] for text in self.texts], self.folder,
                                *flags, seconds_max=300)
        return Scored(self.texts, sequences, read_safetensors(path),
                      read_safetensors(os.path.join(FIXTURES, "score.safetensors")))

    def score_answers(self, flags):
        """The argmax after the last prompt token and after each answer token but the last."""
        tokens = write_json(self.folder, "answers.json", {"sequences": [
            prompt["ids"] + prompt["reference"]["ids"][:-1] for prompt in self.prompts]})
        outcome = must_run("score", "--model", self.model, "--tokens", tokens, "--json", "--quiet",
                           *flags, seconds_max=300)
        return [ours["argmax"][len(prompt["ids"]) - 1:]
                for prompt, ours in zip(self.prompts, outcome.json()["sequences"], strict=True)]

    def assert_answers_follow(self, flags, margin):
        for prompt, argmax in zip(self.prompts, self.score_answers(flags), strict=True):
            reference = prompt["reference"]
            with self.subTest(prompt=prompt["id"]):
                self.assertEqual(
                    [], [(i, ours) for i, (ours, wanted, lead) in
                         enumerate(zip(argmax, reference["ids"], reference["margin"], strict=True))
                         if lead >= margin and ours != wanted])

    def generated(self, flags):
        return generate(self.model, [prompt["ids"] for prompt in self.prompts], self.folder,
                        "--ignore-eos", "--max-tokens", GENERATED_TOKENS, *flags, seconds_max=300)

    def assert_free_runs_follow(self, flags, margin):
        for prompt, ids in zip(self.prompts, self.generated(flags), strict=True):
            reference = prompt["reference"]
            with self.subTest(prompt=prompt["id"]):
                self.assertEqual(len(ids), GENERATED_TOKENS)
                small = [i for i, lead in enumerate(reference["margin"]) if lead < margin]
                end = small[0] if small else GENERATED_TOKENS
                self.assertEqual(ids[:end], reference["ids"][:end])

    def test_token_ids_are_the_reference_ones(self):
        for flag, parsed in (("parse", True), ("text", False)):
            wanted = [entry for entry in self.prompts + self.texts
                      if entry["parse_special"] == parsed]
            path = write_json(self.folder, "texts.json", [entry["text"] for entry in wanted])
            ids = must_run("tokenize", "--model", self.model, "--input", path, "--special",
                           flag).json()
            for entry, ours in zip(wanted, ids, strict=True):
                with self.subTest(text=entry["id"]):
                    self.assertEqual(ours, entry["ids"])
                    if entry["id"] == "forged-special":
                        self.assertEqual([], [i for i in ours if i <= 16])

    def test_detokenizing_gives_the_text_back(self):
        entries = self.prompts + self.texts
        path = write_json(self.folder, "ids.json", [entry["ids"] for entry in entries])
        texts = must_run("detokenize", "--model", self.model, "--input", path).json()
        for entry, ours in zip(entries, texts, strict=True):
            with self.subTest(text=entry["id"]):
                self.assertEqual(ours, entry["text"])

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
        scored = self.score_texts(FLOAT32)
        scored.report("float32 activations, f32 KV")
        self.assertEqual(scored.wrong_above(self.limits["margin_float_kv_f32"]), 0)
        self.assertLessEqual(max(scored.differences), 5e-4)
        self.assertLessEqual(mean(scored.divergences), 1e-7)

    def test_float32_logits_are_the_reference_ones(self):
        # Every logit: ten times the README's 3.6e-5 of an untouched float32 engine.
        reference = read_safetensors(os.path.join(FIXTURES, "logits.safetensors"))
        texts = read_json(os.path.join(FIXTURES, "logits.json"))
        _, path = score(self.model, [text["ids"] for text in texts], self.folder, *FLOAT32)
        ours = read_safetensors(path)
        for index, text in enumerate(texts):
            with self.subTest(text=text["id"]):
                largest = max(abs(a - b) for a, b in zip(
                    numbers(ours["logits.%d" % index]), numbers(reference[text["id"] + ".logits"]),
                    strict=True))
                self.assertLessEqual(largest, 3.6e-4)

    def test_float32_answers_follow_token_by_token(self):
        self.assert_answers_follow(FLOAT32, self.limits["margin_float_kv_f32"])

    def test_float32_free_runs_are_the_reference_ones(self):
        self.assertEqual(self.generated(FLOAT32),
                         [prompt["reference"]["ids"] for prompt in self.prompts])

    def test_float_activations_with_f16_kv_stay_within_its_rounding(self):
        scored = self.score_texts(["--activations", "float32"])
        scored.report("float32 activations, f16 KV")
        self.assertEqual(scored.wrong_above(self.limits["margin_float_kv_f16"]), 0)
        self.assertLessEqual(max(scored.differences), 0.025)
        self.assertLessEqual(mean(scored.divergences), 3e-6)

    def test_default_scores_are_as_near_as_int8_activations_can_be(self):
        scored = self.score_texts([])
        scored.report("default")
        self.assertEqual(scored.wrong_above(self.limits["margin_int8"]), 0)
        self.assertLessEqual(mean(scored.differences), 0.063)
        self.assertLessEqual(mean(scored.divergences), 1.1 * 0.00342)
        self.assertGreaterEqual(scored.agreement(), 0.954)

    def test_default_answers_follow_token_by_token(self):
        self.assert_answers_follow([], self.limits["margin_int8"])

    def test_default_free_runs_follow_up_to_the_first_small_margin(self):
        self.assert_free_runs_follow([], self.limits["margin_int8"])

    def test_every_setting_knows_the_capital_of_france(self):
        robust = next(p for p in self.prompts if p["id"] == "chat-capital-robust")
        # The slow table goes in short steps: a busy machine must not take one for a stuck rank.
        slow = ["--kernels", "reference", "--step-tokens", "4"]
        for flags in ([], FLOAT32, ["--tensor", "2"], slow):
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
                           "--quiet", "--max-tokens", GENERATED_TOKENS, *FLOAT32, seconds_max=300)
        for prompt, line in zip(wanted, outcome.json_lines(), strict=True):
            with self.subTest(prompt=prompt["id"]):
                self.assertEqual(line["finish_reason"], "eos")
                end = prompt["reference"]["first_eog"]
                ids = [i for i in line["token_ids"] if i not in END_TOKENS]
                self.assertEqual(ids, prompt["reference"]["ids"][:end])


if __name__ == "__main__":
    command_line.main()

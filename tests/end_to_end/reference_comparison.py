"""A published model against an independent float64 reference of the same file: what the tests of
SmolLM2 and Gemma 3 share.

A model's fixtures are a folder of tests/data with prompts.json, score.json, score.safetensors and
anchors.json; its README says how they were made, what to assert and where the limits come from.
"""

import collections
import math
import os
import tempfile
import unittest

from command_line import (DATA, generate, must_run, numbers, read_json, read_safetensors, score,
                          write_json)

SECONDS_MAX = 300

# A row of the README's table: the program's flags, the name of the margin X in anchors.json, and
# the largest difference of a log-probability and mean KL.
Setting = collections.namedtuple("Setting", "flags margin difference_max divergence_max")
FLOAT32 = Setting(["--activations", "float32", "--kv-cache", "f32"], "margin_float_kv_f32", 5e-4,
                  1e-7)
FLOAT32_F16_KV = Setting(["--activations", "float32"], "margin_float_kv_f16", 0.025, 3e-6)
FLOAT32_BF16_KV = Setting(["--activations", "float32", "--kv-cache", "bf16"], "margin_bf16", 0.25,
                          3e-4)


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

    def __init__(self):
        self.rows = []          # (margin, reference argmax, our argmax)
        self.differences = []   # of log-probabilities of the next token
        self.divergences = []

    def add(self, text, ours, logits, top):
        """`ours` is what `score` printed of the text, `logits` its tensor, `top` the reference's."""
        self.rows += zip(text["margin"], text["argmax"], ours["argmax"], strict=True)
        self.differences += [abs(a - b) for a, b in
                             zip(text["next_logprob"], ours["logprobs"], strict=True)]
        _, (_, vocabulary), data = logits
        values = data.cast("f")
        ids = numbers(top[text["id"] + ".top_ids"])
        top_logits = numbers(top[text["id"] + ".top_logits"])
        log_sums = numbers(top[text["id"] + ".logsumexp"])
        count = len(ids) // len(text["ids"])
        for position, logprob in enumerate(ours["logprobs"]):
            row = position * vocabulary
            # log p = logit - log sum, so the log sum needs no pass over the vocabulary.
            log_sum = values[row + text["ids"][position + 1]] - logprob
            span = slice(position * count, (position + 1) * count)
            self.divergences.append(divergence_of_top(
                top_logits[span], log_sums[position], [values[row + i] for i in ids[span]],
                log_sum))

    def wrong_above(self, margin):
        return sum(1 for row in self.rows if row[0] >= margin and row[1] != row[2])

    def agreement(self):
        return mean([row[1] == row[2] for row in self.rows])

    def report(self, mode):
        print("\n%s: %d positions, top-1 equal %.4f, largest margin where not %.4f, "
              "|d logprob| mean %.3g max %.3g, KL %.4g" %
              (mode or "default", len(self.rows), self.agreement(),
               max([row[0] for row in self.rows if row[1] != row[2]], default=0),
               mean(self.differences), max(self.differences), mean(self.divergences)))


class PublishedModelTest(unittest.TestCase):
    """What the README's points need. A subclass sets `model` and names its fixtures."""

    fixtures_name = ""
    model = ""

    @classmethod
    def setUpClass(cls):
        cls.fixtures = os.path.join(DATA, cls.fixtures_name)
        cls.prompts = read_json(os.path.join(cls.fixtures, "prompts.json"))
        cls.texts = read_json(os.path.join(cls.fixtures, "score.json"))
        cls.limits = read_json(os.path.join(cls.fixtures, "anchors.json"))["limits"]

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def score_texts(self, flags):
        top = read_safetensors(os.path.join(self.fixtures, "score.safetensors"))
        scored = Scored()
        for text in self.texts:  # one at a time: a position of a large vocabulary is a MiB
            (ours,), path = score(self.model, [text["ids"]], self.folder, *flags,
                                  seconds_max=SECONDS_MAX)
            scored.add(text, ours, read_safetensors(path)["logits.0"], top)
            os.remove(path)
        scored.report(" ".join(flags))
        return scored

    def answer_argmax(self, flags):
        """The argmax after the last prompt token and after each answer token but the last."""
        tokens = write_json(self.folder, "answers.json", {"sequences": [
            prompt["ids"] + prompt["reference"]["ids"][:-1] for prompt in self.prompts]})
        outcome = must_run("score", "--model", self.model, "--tokens", tokens, "--json", "--quiet",
                           *flags, seconds_max=SECONDS_MAX)
        return [ours["argmax"][len(prompt["ids"]) - 1:]
                for prompt, ours in zip(self.prompts, outcome.json()["sequences"], strict=True)]

    def generated(self, flags):
        """As many greedy ids for each prompt as the reference has."""
        return generate(self.model, [prompt["ids"] for prompt in self.prompts], self.folder,
                        "--ignore-eos", "--max-tokens", len(self.prompts[0]["reference"]["ids"]),
                        *flags, seconds_max=SECONDS_MAX)

    def assert_token_ids_are_the_reference_ones(self):
        for flag, parsed in (("parse", True), ("text", False)):
            wanted = [entry for entry in self.prompts + self.texts
                      if entry["parse_special"] == parsed]
            path = write_json(self.folder, "texts.json", [entry["text"] for entry in wanted])
            ids = must_run("tokenize", "--model", self.model, "--input", path, "--special",
                           flag).json()
            for entry, ours in zip(wanted, ids, strict=True):
                with self.subTest(text=entry["id"]):
                    self.assertEqual(ours, entry["ids"])

    def assert_ids_give_the_texts_back(self, first):
        """Of the ids from place `first` on: those before it are no text."""
        entries = self.prompts + self.texts
        path = write_json(self.folder, "ids.json", [entry["ids"][first:] for entry in entries])
        texts = must_run("detokenize", "--model", self.model, "--input", path).json()
        for entry, ours in zip(entries, texts, strict=True):
            with self.subTest(text=entry["id"]):
                self.assertEqual(ours, entry["text"])

    def assert_scores_within(self, setting):
        scored = self.score_texts(setting.flags)
        self.assertEqual(scored.wrong_above(self.limits[setting.margin]), 0)
        self.assertLessEqual(max(scored.differences), setting.difference_max)
        self.assertLessEqual(mean(scored.divergences), setting.divergence_max)

    def assert_int8_scores_within_the_limits(self):
        scored = self.score_texts([])
        self.assertEqual(scored.wrong_above(self.limits["margin_int8"]), 0)
        self.assertLessEqual(mean(scored.differences), self.limits["mean_abs_dlogprob_int8"])
        self.assertLessEqual(mean(scored.divergences), self.limits["mean_kl_topk_int8"])
        self.assertGreaterEqual(scored.agreement(), self.limits["top1_agreement_int8"])

    def assert_answers_follow(self, flags, margin_name):
        """Every forced position with a clear margin has the reference's argmax."""
        margin = self.limits[margin_name]
        for prompt, argmax in zip(self.prompts, self.answer_argmax(flags), strict=True):
            reference = prompt["reference"]
            with self.subTest(prompt=prompt["id"]):
                self.assertEqual(
                    [], [(i, ours) for i, (ours, wanted, lead) in
                         enumerate(zip(argmax, reference["ids"], reference["margin"], strict=True))
                         if lead >= margin and ours != wanted])

    def assert_free_runs_follow(self, flags, margin_name):
        """Greedy ids are the reference's up to its first margin that is too small."""
        margin = self.limits[margin_name]
        for prompt, ids in zip(self.prompts, self.generated(flags), strict=True):
            reference = prompt["reference"]
            with self.subTest(prompt=prompt["id"]):
                self.assertEqual(len(ids), len(reference["ids"]))
                small = [i for i, lead in enumerate(reference["margin"]) if lead < margin]
                end = small[0] if small else len(ids)
                self.assertEqual(ids[:end], reference["ids"][:end])

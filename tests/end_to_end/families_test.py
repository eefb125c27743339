#!/usr/bin/python3
"""Tiny models of every family against their float64 references, through the command line, from a
GGUF file and from a Hugging Face directory.

The tolerance is that of fixtures/families/README.md: 2e-4 for float32 activations and exact
weights; greedy margins there are at least a hundred times as large, so greedy ids are equal.
"""

import os
import tempfile
import unittest

import command_line
from command_line import (DATA, ROOT, generate, must_run, numbers, read_json, read_safetensors,
                          score)

FIXTURES = os.environ.get("TRIREME_FIXTURES") or os.path.join(ROOT, "..", "shared", "fixtures")
FAMILIES = ("llama", "llama_rope_linear", "llama_rope_llama3", "llama_rope_yarn", "llama_bias",
            "mistral", "qwen2", "qwen3", "phi3", "phi3_longrope", "gemma2", "gemma3_text",
            "smollm3", "olmo2", "exaone4", "glm4", "granite", "ernie4_5", "starcoder2", "cohere2",
            "nemotron", "mixtral", "qwen2_moe", "qwen3_moe", "glm4_moe", "gpt_oss", "deepseek_v2",
            "deepseek_v3", "arcee", "seed_oss", "olmo3", "olmoe", "minimax_m2")
FLOAT32 = ["--activations", "float32", "--kv-cache", "f32", "--threads", "1"]
LAYOUTS = [[], ["--tensor", "2"], ["--stages", "2"], ["--tensor", "2", "--stages", "2"]]
LOGIT_ERROR_MAX = 2e-4


def folders_of(family):
    return [os.path.join(root, "families", family) for root in (DATA, FIXTURES)]


def folder_of(family):
    """Where the expected values lie, or None."""
    for folder in folders_of(family):
        if os.path.exists(os.path.join(folder, "expected.json")):
            return folder
    return None


def models_of(family):
    """Every container that the fixture has: the file, the directory."""
    models = []
    for name in ("model.gguf", "config.json"):
        for folder in folders_of(family):
            if os.path.exists(os.path.join(folder, name)):
                models.append(os.path.join(folder, name) if name == "model.gguf" else folder)
                break
    return models


class Case:
    """One model file with what is expected of it."""

    def __init__(self, model, folder, expected, flags=()):
        self.model = model
        self.flags = list(flags)
        self.expected = read_json(os.path.join(folder, expected + ".json"))
        self.sequences = self.expected["sequences"]
        self.prompts = [s["input_ids"] for s in self.sequences]
        self.reference = read_safetensors(os.path.join(folder, expected + ".safetensors"))


def cases():
    for family in FAMILIES:
        folder = folder_of(family)
        if folder is None:
            print("%s is not there (TRIREME_FIXTURES names another place); skipped" % family)
            continue
        for model in models_of(family):
            if family == "phi3_longrope":
                # The list of factors is chosen by the context: the original one is 256.
                yield Case(model, folder, "expected", ["--context-tokens", "256"])
                yield Case(model, folder, "expected_long")
            else:
                yield Case(model, folder, "expected")


class FamiliesTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def for_each_case(self, act):
        for case in cases():
            with self.subTest(model=case.model, flags=case.flags):
                act(case)

    def largest_error(self, case, logits):
        ours = read_safetensors(logits)
        largest = 0
        for index in range(len(case.sequences)):
            name = "logits.%d" % index
            self.assertEqual(ours[name][:2], ("F32", case.reference[name][1]))
            largest = max(largest, max(
                abs(a - b) for a, b in
                zip(numbers(ours[name]), numbers(case.reference[name]), strict=True)))
        return largest

    def test_logits_are_the_reference_ones_with_the_same_bits_in_every_layout(self):
        def act(case):
            bits = []
            for layout in LAYOUTS:
                _, path = score(case.model, case.prompts, self.folder, *FLOAT32, *case.flags,
                                *layout)
                self.assertLessEqual(self.largest_error(case, path), LOGIT_ERROR_MAX, layout)
                with open(path, "rb") as file:
                    bits.append(file.read())
                self.assertEqual(bits[-1], bits[0], layout)
        self.for_each_case(act)

    def test_the_default_arithmetic_has_the_same_bits_in_every_layout_and_chunk(self):
        def act(case):
            wanted = None
            for flags in LAYOUTS + [["--step-tokens", "7", "--tensor", "2"]]:
                _, path = score(case.model, case.prompts, self.folder, "--threads", "1",
                                *case.flags, *flags)
                with open(path, "rb") as file:
                    found = file.read()
                wanted = wanted or found
                self.assertEqual(found, wanted, flags)
        self.for_each_case(act)

    def test_the_default_arithmetic_stays_near_the_reference(self):
        # Weights of these files are bf16, f16 or f32, so the default rounds only keys and values to
        # f16 and, on machines with such instructions, activations to bf16. The README of the
        # fixtures allows 2.5 times the error of an engine that rounds everything to bf16; for
        # mixtures rounding may change an expert, so they are left out.
        def act(case):
            if "routings" in case.expected:
                return
            _, path = score(case.model, case.prompts, self.folder, "--threads", "1", *case.flags)
            self.assertLessEqual(self.largest_error(case, path),
                                 2.5 * case.expected["bfloat16_max_error"])
        self.for_each_case(act)

    def test_greedy_ids_are_the_reference_ones(self):
        def act(case):
            for layout in ([], ["--tensor", "2", "--stages", "2"]):
                ids = generate(case.model, case.prompts, self.folder, "--ignore-eos",
                               "--max-tokens", len(case.sequences[0]["greedy_ids"]), *FLOAT32,
                               *case.flags, *layout)
                self.assertEqual(ids, [s["greedy_ids"] for s in case.sequences])
        self.for_each_case(act)

    def test_text_comes_from_the_tokenizer_beside_the_weights(self):
        """The end tokens of the folder's files, too."""
        tokenizer = folder_of("tiny_tokenizer") or os.path.join(DATA, "families", "tiny_tokenizer")
        for case in read_json(os.path.join(tokenizer, "text_generation.json"))["cases"]:
            directories = [model for model in models_of(case["model"]) if os.path.isdir(model)]
            for directory in directories:
                with self.subTest(model=case["model"], prompt=case["prompt"]), \
                        tempfile.TemporaryDirectory() as folder:
                    for source in (directory, tokenizer):
                        for name in os.listdir(source):
                            if not os.path.exists(os.path.join(folder, name)):
                                os.symlink(os.path.join(source, name), os.path.join(folder, name))
                    made = must_run("generate", "--model", folder, "--prompt", case["prompt"],
                                    "--max-tokens", str(case["max_new_tokens"]), "--temperature",
                                    "0", "--json", "--quiet", *FLOAT32).json()
                    wanted = case["generated_ids"]
                    if case["finish_reason"] != "length":
                        wanted = wanted[:-1]  # the end token is not shown
                    self.assertEqual(made["token_ids"], wanted)
                    self.assertEqual(made["text"], case["text"])

    def test_token_ids_on_the_command_line_give_the_same_as_a_file(self):
        def act(case):
            sequence = case.sequences[1]
            ids = ",".join(str(i) for i in sequence["input_ids"])
            answer = must_run("generate", "--model", case.model, "--token-ids", ids,
                              "--ignore-eos", "--max-tokens", "24", "--json", "--quiet", *FLOAT32,
                              *case.flags).json()
            self.assertEqual(answer["token_ids"], sequence["greedy_ids"])
            self.assertEqual(answer["prompt_token_ids"], sequence["input_ids"])
            self.assertEqual(answer["finish_reason"], "max_tokens")
        self.for_each_case(act)

    def test_scored_answers_are_what_generation_chose(self):
        def act(case):
            scored, _ = score(case.model, [s["input_ids"] + s["greedy_ids"] for s in case.sequences],
                              self.folder, *FLOAT32, *case.flags)
            for ours, wanted in zip(scored, case.sequences, strict=True):
                first = len(wanted["input_ids"]) - 1
                self.assertEqual(ours["argmax"][first:-1], wanted["greedy_ids"])
        self.for_each_case(act)


if __name__ == "__main__":
    command_line.main()

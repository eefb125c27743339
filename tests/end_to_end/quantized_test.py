#!/usr/bin/python3
"""Quantised checkpoints in every published layout against the tools' own values, through the command
line, each from its directory.

The tolerances are those of fixtures/quantized/README.md: dequantised matrices to the bit, logits
within 2e-3 for float32 activations, equal greedy ids.
"""

import array
import os
import tempfile
import unittest
import zlib

import command_line
from command_line import (DATA, MALFORMED, ROOT, generate, must_run, numbers, read_json,
                          read_safetensors, run, score)

FIXTURES = os.environ.get("TRIREME_FIXTURES") or os.path.join(ROOT, "..", "shared", "fixtures")
QUANTIZED = os.path.join(FIXTURES, "quantized")
# Of torchao the format page says that it is to be refused.
REFUSED = ("torchao-int8",)
FLOAT32 = ["--activations", "float32", "--kv-cache", "f32", "--threads", "1"]
LAYOUTS = [[], ["--tensor", "2"], ["--stages", "2"], ["--tensor", "2", "--stages", "2"]]
LOGIT_ERROR_MAX = 2e-3


class Case:
    """One checkpoint with what is expected of it."""

    def __init__(self, folder):
        self.folder = folder
        self.name = os.path.relpath(folder, QUANTIZED)
        self.expected = read_json(os.path.join(folder, "expected.json"))
        self.prompts = self.expected["sequences"]
        self.layers = read_json(os.path.join(folder, "config.json"))["num_hidden_layers"]

    def layouts(self):
        return [layout for layout in LAYOUTS if "--stages" not in layout or self.layers > 1]


def folders():
    """Of all checkpoints that load."""
    if not os.path.exists(os.path.join(QUANTIZED, "index.json")):
        print("%s is not there (TRIREME_FIXTURES names another place); skipped" % QUANTIZED)
        return []
    controls = os.path.join(QUANTIZED, "refuse", "controls")
    names = [entry["dir"] for entry in read_json(os.path.join(QUANTIZED, "index.json"))
             if entry["dir"] not in REFUSED]
    return ([os.path.join(QUANTIZED, name) for name in names] +
            [os.path.join(controls, name) for name in sorted(os.listdir(controls))])


def checksum(tensor):
    """CRC-32 of float32 values, with -0 as +0."""
    words = array.array("I", bytes(tensor[2]))
    for index, word in enumerate(words):
        if word == 0x80000000:
            words[index] = 0
    return zlib.crc32(words.tobytes())


class QuantizedTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def for_each_case(self, act):
        for folder in folders():
            case = Case(folder)
            with self.subTest(case=case.name):
                act(case)

    def test_dequantised_matrices_are_the_tools_own_to_the_bit(self):
        def act(case):
            values = os.path.join(self.folder, "values.safetensors")
            for name, matrix in case.expected["matrices"].items():
                must_run("inspect", case.folder, "--tensor", name, "--values", values)
                tensor = read_safetensors(values)[name]
                self.assertEqual(tensor[:2], ("F32", matrix["shape"]), name)
                self.assertEqual("%08x" % checksum(tensor), matrix["crc32"], name)
        self.for_each_case(act)

    def test_logits_are_the_reference_ones_with_the_same_bits_in_every_layout(self):
        def act(case):
            reference = read_safetensors(os.path.join(case.folder, "expected.safetensors"))
            bits = []
            for layout in case.layouts():
                _, path = score(case.folder, case.prompts, self.folder, *FLOAT32, *layout)
                with open(path, "rb") as file:
                    bits.append(file.read())
                self.assertEqual(bits[-1], bits[0], layout)
            ours = read_safetensors(path)
            for index in range(len(case.prompts)):
                name = "logits.%d" % index
                self.assertEqual(ours[name][:2], reference[name][:2])
                self.assertLessEqual(
                    max(abs(a - b) for a, b in
                        zip(numbers(ours[name]), numbers(reference[name]), strict=True)),
                    LOGIT_ERROR_MAX)
        self.for_each_case(act)

    def test_greedy_ids_are_the_reference_ones(self):
        def act(case):
            wanted = case.expected["greedy"]["ids"]
            for layout in (case.layouts()[0], case.layouts()[-1]):
                ids = generate(case.folder, case.prompts[:1], self.folder, "--ignore-eos",
                               "--max-tokens", len(wanted), *FLOAT32, *layout)
                self.assertEqual(ids, [wanted], layout)
        self.for_each_case(act)

    def test_the_default_arithmetic_has_the_same_bits_in_every_layout_and_table(self):
        def act(case):
            wanted = None
            for flags in case.layouts() + [["--kernels", "reference"],
                                           ["--step-tokens", "7", "--tensor", "2"]]:
                _, path = score(case.folder, case.prompts, self.folder, "--threads", "1", *flags)
                with open(path, "rb") as file:
                    found = file.read()
                wanted = wanted or found
                self.assertEqual(found, wanted, flags)
        self.for_each_case(act)

    def test_inspection_shows_scheme_and_bits_per_weight(self):
        def act(case):
            listed = {entry["name"]: entry
                      for entry in must_run("inspect", case.folder, "--json").json()["quantized"]}
            for name, matrix in case.expected["matrices"].items():
                if ".experts." in name and name not in listed:
                    continue  # stored with the layer's other experts
                self.assertEqual(listed[name]["shape"], matrix["shape"])
                self.assertLess(listed[name]["bits_per_weight"], 12)
                self.assertTrue(listed[name]["scheme"])
            text = must_run("inspect", case.folder).output
            self.assertIn("bits/weight", text)
        self.for_each_case(act)

    def test_weights_take_the_bytes_of_their_format_in_memory(self):
        # 589824 quantised weights in each of 2 layers, 5 norms of 256, embedding and output matrix of
        # 320 x 256 in F16 (FP8: 4 norms of 32 more, the embedding serves as output, BF16).
        # Q4_0 takes 18 bytes for 32 weights and pads a leaf of 32 columns from 288 to 320 bytes for
        # 16 rows: 8 leaves of 16 such runs in the attention's output matrix of either layer.
        # F8_E4M3 takes a byte a weight and 4 bytes a row for each superblock of 128 columns that a
        # slice touches: 2 of each of 1536 rows in the five matrices that are cut by rows, one in each
        # of 8 leaves of 256 rows in the two others. NVFP4_MUL takes 18 bytes for 32 weights and, for
        # 16 rows of a superblock of 256, 64 bytes: 2368 a run, 384 in leaves of 32 columns, padded
        # from 352, 640 in those of 64. NF4 takes 16 bytes for 32 and 4 bytes a row of 64 columns.
        for name, wanted in (
                ("gptq-int4-g128-sym",
                 2 * (589824 // 32 * 18 + 8 * 16 * 32) + 5 * 256 * 4 + 2 * 320 * 256 * 2),
                ("hf-fp8-block128",
                 2 * (589824 + 4 * (2 * 1536 + 8 * 2 * 256)) + (5 * 256 + 4 * 32) * 4 +
                 320 * 256 * 2),
                ("modelopt-nvfp4",
                 96 * 2368 + 16 * 8 * (384 + 640) + (3 * 256 + 2 * 32) * 4 + 128 * 256 * 2),
                ("bnb-nf4",
                 589824 // 2 + 4 * (4 * 1536 + 8 * 2 * 256) + 3 * 256 * 4 + 128 * 256 * 2)):
            folder = os.path.join(QUANTIZED, name)
            if not os.path.exists(folder):
                continue
            errors = must_run("generate", "--model", folder, "--token-ids", "1,2", "--max-tokens",
                              1, "--threads", 1).errors
            self.assertIn("rank 0: weights %d bytes" % wanted, errors)

    def test_damaged_and_unknown_checkpoints_are_refused_by_name(self):
        index = os.path.join(QUANTIZED, "refuse", "index.json")
        if not os.path.exists(index):
            return
        cases = read_json(index)["cases"] + [
            {"dir": os.path.join("..", name), "error_should_contain": [name.split("-")[0]]}
            for name in REFUSED]
        for case in cases:
            with self.subTest(case=case["dir"]):
                folder = os.path.join(QUANTIZED, "refuse", case["dir"])
                outcome = run("generate", "--model", folder, "--token-ids", "1,2,3",
                              "--max-tokens", "1", "--json", "--quiet", *FLOAT32)
                self.assertEqual(outcome.code, MALFORMED, str(outcome))
                self.assertEqual(outcome.output, "")
                for word in case["error_should_contain"]:
                    self.assertIn(word.lower(), " ".join(outcome.error_lines()).lower())


if __name__ == "__main__":
    command_line.main()

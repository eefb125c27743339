#!/usr/bin/python3
"""`trireme synthesize`: models of random weights that the program itself, and bench, can run."""

import os
import tempfile
import unittest

import command_line
from command_line import INTERNAL, OK, USAGE, must_run, run

SMALL = ["--like", "smollm2-135m", "--layers", "2"]


class SynthesizeTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = os.path.join(temporary.name, "model.gguf")

    def test_a_model_runs_in_its_format(self):
        for name in ("q8_0", "q4_0", "bf16"):
            must_run("synthesize", self.path, *SMALL, "--format", name)
            inspected = must_run("inspect", self.path, "--json").json()
            formats = {tensor["name"]: tensor["type"] for tensor in inspected["tensors"]}
            self.assertEqual(formats["blk.1.ffn_down.weight"].lower(), name)
            bench = must_run("bench", "--model", self.path, "--prompt-tokens", "16",
                             "--generate-tokens", "4", "--repeat", "1", "--threads", "1",
                             "--json", "--quiet").json()
            self.assertGreater(bench["decode_tokens_per_second"]["median"], 0)
            many = must_run("bench", "--model", self.path, "--prompt-tokens", "16",
                            "--generate-tokens", "4", "--depth", "32", "--streams", "3",
                            "--repeat", "1", "--threads", "1", "--json", "--quiet").json()
            self.assertEqual((many["depth"], many["streams"]), (32, 3))
            self.assertGreater(many["decode_tokens_per_second"]["median"], 0)

    def test_what_cannot_be_is_refused(self):
        for arguments, word in ((["--like", "gpt-9"], "llama-8b"),
                                (["--format", "q9_9"], "q4_k"),
                                (["--layers", "-1"], "--layers"),
                                # Rows of 576 are no whole number of superblocks.
                                (SMALL + ["--format", "q4_k"], "rows of 576 values")):
            outcome = run("synthesize", self.path, *arguments)
            self.assertEqual(outcome.code, USAGE, str(outcome))
            self.assertIn(word, outcome.errors)
            self.assertFalse(os.path.exists(self.path))
        self.assertEqual(run("synthesize", *SMALL).code, USAGE)
        unwritable = run("synthesize", "/nowhere/model.gguf", *SMALL, "--format", "q8_0")
        self.assertNotIn(unwritable.code, (OK, INTERNAL))
        self.assertIn("/nowhere/model.gguf", unwritable.errors)


if __name__ == "__main__":
    command_line.main()

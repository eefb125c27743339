#!/usr/bin/python3
"""Ranks that were not started alike: no rank loads, the job ends with code 76, and both values and
hosts are named."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replica as shared  # noqa: E402
from tiny_models import write_uneven_model  # noqa: E402

DISAGREE = 76
PATIENCE_SECONDS = 60  # of a busy machine; without the check a start waits for its peers for 45 s
TOKENIZED = os.path.join(shared.ROOT, "tests/data/gguf-files/good/base-bpe.gguf")


class DisagreementTest(unittest.TestCase):
    def setUp(self):
        self.keeper = tempfile.TemporaryDirectory()
        self.addCleanup(self.keeper.cleanup)
        self.folder = self.keeper.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def changed(self, source, name, change):
        with open(source, "rb") as file:
            content = change(file.read())
        with open(self.path(name), "wb") as file:
            file.write(content)
        shutil.copymode(source, self.path(name))
        return self.path(name)

    def refuse(self, what, rank_words):
        """`rank_words` are the two ranks' commands."""
        parts = []
        for words in rank_words:
            parts += [":", "-n", "1"] + words
        done = subprocess.run(shared.MPIRUN + parts[1:], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=PATIENCE_SECONDS, encoding="utf-8", errors="replace")
        self.assertEqual(done.returncode, DISAGREE, done.stdout)
        host = re.escape(os.uname().nodename)
        said = re.search(r"ranks disagree on %s: rank=0 host=%s has \"(.+?)\", rank=1 host=%s has "
                         r"\"(.+?)\"" % (what, host, host), done.stdout)
        self.assertIsNotNone(said, done.stdout)
        self.assertNotEqual(said.group(1), said.group(2))
        self.assertNotIn("phase=load", done.stdout)  # before anything is loaded
        print(said.group(0), flush=True)

    def serve(self, model, *flags, program=shared.PROGRAM):
        return [program, "serve", "--model", model, "--tensor", "2", "--listen", "127.0.0.1:0"] + \
            list(flags)

    def test_D11_another_model_on_one_rank_is_refused(self):
        write_uneven_model(self.path("a.gguf"))
        # One byte of the last tensor's data.
        other = self.changed(self.path("a.gguf"), "b.gguf",
                             lambda content: content[:-1] + bytes([content[-1] ^ 1]))
        self.refuse("model", [self.serve(self.path("a.gguf")), self.serve(other)])

    def test_D11_another_tokenizer_on_one_rank_is_refused(self):
        def rename_a_token(content):
            place = content.index(b"tokenizer.ggml.tokens") + len(b"tokenizer.ggml.tokens")
            place += 4 + 4 + 8 + 8  # type, element type, count, length of the first token
            return content[:place] + b"\x7e" + content[place + 1:]
        other = self.changed(TOKENIZED, "b.gguf", rename_a_token)
        self.refuse("tokenizer", [self.serve(TOKENIZED), self.serve(other)])

    def test_D11_another_tokenizer_beside_the_weights_of_one_rank_is_refused(self):
        families = os.path.join(shared.ROOT, "tests/data/families")
        folders = []
        for name in ("a", "b"):
            folders.append(self.path(name))
            shutil.copytree(os.path.join(families, "gpt_oss"), folders[-1])
            for file in ("tokenizer.json", "tokenizer_config.json"):
                shutil.copy(os.path.join(families, "tiny_tokenizer", file), folders[-1])
        with open(os.path.join(folders[1], "tokenizer.json"), "r+b") as file:
            content = file.read()
            file.seek(content.index(b'"add_prefix_space": false'))
            file.write(b'"add_prefix_space": true ')
        self.refuse("tokenizer", [self.serve(folder) for folder in folders])

    def test_D11_another_build_on_one_rank_is_refused(self):
        notes = subprocess.run(["readelf", "--notes", shared.PROGRAM], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=True, encoding="utf-8").stdout
        build = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes).group(1))
        # The same program with the mark of another build.
        other = self.changed(shared.PROGRAM, "trireme", lambda content: content.replace(
            build, bytes(byte ^ 0xff for byte in build)))
        write_uneven_model(self.path("a.gguf"))
        self.refuse("build", [self.serve(self.path("a.gguf")),
                              self.serve(self.path("a.gguf"), program=other)])

    def test_D11_other_settings_on_one_rank_are_refused(self):
        model = self.path("a.gguf")
        write_uneven_model(model)
        self.refuse("settings", [self.serve(model), self.serve(model, "--kv-cache", "f32")])
        self.refuse("settings", [self.serve(model), self.serve(model, "--context-tokens", "128")])
        self.refuse("layout", [self.serve(model),
                               self.serve(model, "--tensor", "1", "--stages", "2")])


if __name__ == "__main__":
    shared.require()
    unittest.main(verbosity=2)

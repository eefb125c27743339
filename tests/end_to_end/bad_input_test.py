#!/usr/bin/python3
"""Files and flags that are wrong: one clear line, the documented exit code, no crash, no hang.

Expected words and stages come from tests/data/gguf-files/index.json, exit codes from
docs/errors.md.
"""

import hashlib
import os
import shutil
import tempfile
import unittest

import command_line
from command_line import (DATA, DOES_NOT_FIT, MALFORMED, MISSING, MPIRUN, OK, USAGE, must_run,
                          numbers, read_json, read_safetensors, run, write_json)

FILES = os.path.join(DATA, "gguf-files")
GOOD_MODEL = os.path.join(FILES, "good", "base-bpe.gguf")
# A refusal takes milliseconds; the rest is for a busy machine and for starting a process.
SECONDS_MAX = 1
# 64 MiB beyond the file, and what starting the program takes by itself.
DATA_BYTES_MAX = 96 << 20
# Enough for a model with 16 positions of KV cache and one thread.
SMALL = ["--threads", "1", "--kv-tokens", "256", "--context-tokens", "64", "--quiet"]

# Where our wording is as clear as the fixture's.
FURTHER_SPELLINGS = {}


class BadInputTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.texts = write_json(self.folder, "texts.json", ["on the one"])
        self.tokens = write_json(self.folder, "tokens.json", {"sequences": [[1, 2, 3]]})

    def inspect(self, path):
        return run("inspect", path, data_bytes_max=DATA_BYTES_MAX, seconds_max=30)

    def score(self, path):
        return run("score", "--model", path, "--tokens", self.tokens, "--json", *SMALL,
                   data_bytes_max=DATA_BYTES_MAX, seconds_max=30)

    def tokenize(self, path):
        return run("tokenize", "--model", path, "--input", self.texts,
                   data_bytes_max=DATA_BYTES_MAX, seconds_max=30)

    def assert_one_line(self, outcome, codes):
        self.assertIn(outcome.code, codes, str(outcome))
        self.assertEqual(outcome.output, "", str(outcome))
        self.assertEqual(len(outcome.errors.splitlines()), 1, str(outcome))
        self.assertEqual(len(outcome.error_lines()), 1, str(outcome))

    def assert_refused(self, outcome, path, words, codes=(MALFORMED,), name=None):
        self.assert_one_line(outcome, codes)
        self.assertLess(outcome.seconds, SECONDS_MAX, str(outcome))
        message = outcome.errors.lower()
        # Of a split model any part may be the one at fault.
        wanted = name or os.path.basename(path)
        self.assertIn(wanted.lower(), message, str(outcome))
        # The words must be in the message itself, not in the file's name.
        message = message.replace(path.lower(), "").replace(os.path.basename(path).lower(), "")
        for spellings in words:
            spellings = spellings + FURTHER_SPELLINGS.get(os.path.basename(path), [])
            self.assertTrue(any(spelling.lower() in message for spelling in spellings),
                            "none of %s in: %s" % (spellings, outcome))

    def test_C9_D2_D3_D4_D5_D8_refuses_every_malformed_file_by_name_and_reason(self):
        for entry in read_json(os.path.join(FILES, "index.json"))["bad"]:
            path = os.path.join(FILES, "bad", entry["file"])
            stage = entry["stage"]
            with self.subTest(file=entry["file"], stage=stage, wrong=entry["wrong"]):
                if stage == "container":
                    self.assert_refused(self.inspect(path), path, entry["words"])
                elif stage == "tokenizer":
                    self.assert_refused(self.score(path), path, entry["words"])
                    self.assert_refused(self.tokenize(path), path, entry["words"])
                elif stage == "split":
                    self.assert_split_refused(path, entry)
                else:
                    self.assert_refused(self.score(path), path, entry["words"])

    def assert_split_refused(self, path, entry):
        outcome = self.score(path)
        self.assert_one_line(outcome, (MALFORMED, MISSING))
        self.assertLess(outcome.seconds, SECONDS_MAX, str(outcome))
        self.assertIn("tiny-0000", outcome.errors, str(outcome))
        for spellings in entry["words"]:
            self.assertTrue(any(word.lower() in outcome.errors.lower() for word in spellings),
                            "none of %s in: %s" % (spellings, outcome))

    def test_malformed_containers_are_refused_by_every_subcommand(self):
        for entry in read_json(os.path.join(FILES, "index.json"))["bad"][::8]:
            if entry["stage"] != "container":
                continue
            path = os.path.join(FILES, "bad", entry["file"])
            with self.subTest(file=entry["file"]):
                self.assert_refused(self.score(path), path, entry["words"])
                self.assert_refused(self.tokenize(path), path, entry["words"])

    def test_doubtful_files_load_or_are_refused_cleanly(self):
        for entry in read_json(os.path.join(FILES, "index.json"))["odd"]:
            path = os.path.join(FILES, "odd", entry["file"])
            with self.subTest(file=entry["file"], question=entry["question"]):
                for outcome in (self.inspect(path), self.score(path), self.tokenize(path)):
                    self.assertIn(outcome.code, (OK, MALFORMED), str(outcome))
                    self.assertEqual(len(outcome.error_lines()), int(outcome.code != OK),
                                     str(outcome))
                self.assert_finite_logits(path, entry["file"])

    def assert_finite_logits(self, path, name):
        if name in ("weights-nan.gguf", "freq-base-zero.gguf"):
            return
        tokens = write_json(self.folder, "first.json", {"sequences": [[0]]})
        logits = os.path.join(self.folder, "logits.safetensors")
        outcome = run("score", "--model", path, "--tokens", tokens, "--logits", logits, *SMALL)
        if outcome.code == OK:
            for value in numbers(read_safetensors(logits)["logits.0"]):
                self.assertTrue(abs(value) < 1e30, name)

    def test_hostile_chat_templates_end_with_an_error_or_text(self):
        chat = write_json(self.folder, "chat.json",
                          {"messages": [{"role": "user", "content": "hello"}]})
        for name in ("template-unclosed.gguf", "template-hostile.gguf", "template-loop.gguf"):
            with self.subTest(file=name):
                outcome = run("render", "--model", os.path.join(FILES, "odd", name), "--input",
                              chat, data_bytes_max=DATA_BYTES_MAX, seconds_max=30)
                self.assertIn(outcome.code, (OK, USAGE, MALFORMED), str(outcome))
                self.assertEqual(len(outcome.errors.splitlines()), int(outcome.code != OK),
                                 str(outcome))
                self.assertNotIn("uid=", outcome.output, str(outcome))

    def test_good_files_give_the_reference_logits(self):
        reference = read_safetensors(os.path.join(FILES, "good", "logits.safetensors"))
        tokens = write_json(self.folder, "nine.json",
                            {"sequences": [list(numbers(reference["tokens"]))]})
        logits = os.path.join(self.folder, "logits.safetensors")
        for name, entry in sorted(read_json(os.path.join(FILES, "good", "expected.json")).items()):
            source = entry.get("same_model_as", name)
            first_part = entry["kind"] == "part" and "-00001-of-" in name
            if source not in reference or not (entry["kind"] == "model" or first_part):
                continue
            # The README of the fixture: 1e-3 for float activations, 0.5 for int8 ones.
            for flags, tolerance in ((["--activations", "float32", "--kv-cache", "f32"], 1e-3),
                                     ([], 0.5)):
                with self.subTest(file=name, flags=flags):
                    must_run("score", "--model", os.path.join(FILES, "good", name), "--tokens",
                             tokens, "--logits", logits, *SMALL, *flags)
                    ours = numbers(read_safetensors(logits)["logits.0"])
                    wanted = numbers(reference[source])
                    self.assertEqual(len(ours), len(wanted))
                    largest = max(abs(a - b) for a, b in zip(ours, wanted))
                    self.assertLessEqual(largest, tolerance)

    def test_good_containers_are_shown_but_hold_no_model(self):
        for name, entry in sorted(read_json(os.path.join(FILES, "good", "expected.json")).items()):
            path = os.path.join(FILES, "good", name)
            with self.subTest(file=name):
                outcome = self.inspect(path)
                if entry["kind"] == "part" and "-00001-of-" not in name:
                    self.assert_refused(outcome, path, [["-00001-of-0000"]])
                    continue
                self.assertEqual(outcome.code, OK, str(outcome))
                self.assertEqual(outcome.errors, "")
                if entry["kind"] == "container":
                    self.assert_refused(self.score(path), path, [])

    def test_D1_every_cut_at_a_field_is_refused(self):
        for name, entry in read_json(os.path.join(FILES, "index.json"))["truncate"].items():
            with open(os.path.join(FILES, "good", name), "rb") as file:
                content = file.read()
            path = os.path.join(self.folder, "cut.gguf")
            # Every length is the fuzz test's work; here a share of the fields, cut at the end and
            # a byte to either side.
            for number, boundary in enumerate(entry["boundaries"]):
                length = boundary + (number % 3) - 1
                if number % 4 != 0 or length >= entry["needed_bytes"]:
                    continue
                with open(path, "wb") as file:
                    file.write(content[:length])
                with self.subTest(base=name, length=length):
                    self.assert_one_line(self.inspect(path), (MALFORMED,))

    def test_D1_things_that_are_no_files_are_refused(self):
        empty = os.path.join(self.folder, "empty.gguf")
        open(empty, "wb").close()
        fifo = os.path.join(self.folder, "fifo.gguf")
        os.mkfifo(fifo)
        loop = os.path.join(self.folder, "loop.gguf")
        os.symlink(loop, loop)
        for path in (empty, fifo, loop, self.folder, "/dev/zero", "/dev/null"):
            for act in (self.inspect, self.score, self.tokenize):
                with self.subTest(path=path, subcommand=act.__name__):
                    self.assert_refused(act(path), path, [], codes=(MALFORMED, 66, 74))

    def test_D9_a_file_that_is_not_as_listed_is_named(self):
        model = os.path.join(self.folder, "model.gguf")
        shutil.copy(GOOD_MODEL, model)
        with open(model, "rb") as file:
            content = bytearray(file.read())
        with open(os.path.join(self.folder, "SHA256SUMS"), "w") as file:
            file.write("%s  model.gguf\n" % hashlib.sha256(content).hexdigest())
        good = run("inspect", model, "--verify")
        self.assertEqual(good.code, OK, str(good))
        self.assertIn("1 files", good.errors)
        content[-1] ^= 1
        with open(model, "wb") as file:
            file.write(content)
        for path in (model, self.folder):
            with self.subTest(path=path):
                bad = run("inspect", path, "--verify")
                self.assertEqual(bad.code, MALFORMED, str(bad))
                self.assertEqual(bad.output, "")
                self.assertIn("model.gguf: its SHA-256 is", bad.errors)
        os.remove(os.path.join(self.folder, "SHA256SUMS"))
        self.assertEqual(run("inspect", model, "--verify").code, MISSING)

    def test_a_missing_file_is_named(self):
        path = os.path.join(self.folder, "no-such.gguf")
        for outcome in (self.inspect(path), self.score(path), self.tokenize(path),
                        run("generate", "--model", path, "--token-ids", "1", *SMALL),
                        run("score", "--model", GOOD_MODEL, "--tokens", path, *SMALL),
                        run("generate", "--model", GOOD_MODEL, "--prompt-file", path, *SMALL),
                        run("tokenize", "--model", GOOD_MODEL, "--input", path)):
            with self.subTest(arguments=outcome.arguments):
                errors = outcome.error_lines()
                self.assertEqual(outcome.code, MISSING, str(outcome))
                self.assertEqual(len(errors), 1, str(outcome))
                self.assertIn("no-such.gguf", errors[0])

    def test_flags_out_of_range_are_refused_with_the_value_and_the_range(self):
        generate = ["generate", "--model", GOOD_MODEL, "--token-ids", "1"] + SMALL
        for flag, value in (
                ("--tensor", "0"), ("--tensor", "3"), ("--tensor", "16"), ("--tensor", "-1"),
                ("--tensor", "two"), ("--stages", "0"), ("--stages", "3"), ("--stages", "-2"),
                ("--stage-layers", "1,x"), ("--stage-layers", "0,2"), ("--threads", "-1"),
                ("--threads", "100000"), ("--activations", "int3"), ("--kv-cache", "f8"),
                ("--bad-weights", "ignore"),
                ("--kernels", "mmx"), ("--context-tokens", "-1"), ("--kv-tokens", "-5"),
                ("--step-tokens", "0"), ("--sequences", "0"), ("--temperature", "-1"),
                ("--temperature", "nan"), ("--temperature", "2.5"), ("--top-k", "-1"),
                ("--top-p", "1.5"), ("--top-p", "0"), ("--min-p", "-0.1"), ("--min-p", "inf"),
                ("--max-tokens", "-1"), ("--max-tokens", "99999999999999999999"),
                ("--seed", "-1"), ("--token-ids", "1,99999"), ("--token-ids", "-1"),
                ("--token-ids", "1,,2"), ("--token-ids", "")):
            with self.subTest(flag=flag, value=value):
                outcome = run(*generate, flag, value, seconds_max=30)
                errors = outcome.error_lines()
                self.assertEqual(outcome.code, USAGE, str(outcome))
                self.assertEqual(len(errors), 1, str(outcome))
                word = flag.strip("-").split("-")[0]
                self.assertIn(word, errors[0].replace("kernel", "kernels"), str(outcome))

    def test_unknown_words_are_refused_with_a_hint(self):
        for arguments, words in (
                (["generat", "--model", GOOD_MODEL], ["generat"]),
                (["generate", "--modle", GOOD_MODEL], ["modle", "model"]),
                (["score", "--model"], ["model"]),
                (["inspect"], ["file"]),
                (["inspect", GOOD_MODEL, GOOD_MODEL], ["base-bpe"]),
                (["inspect", GOOD_MODEL, "--temperature", "1"], ["temperature"]),
                (["generate", "--token-ids", "1"], ["--model"]),
                (["generate", "--model", GOOD_MODEL], ["prompt"]),
                (["generate", "--model", GOOD_MODEL, "--endpoint", "127.0.0.1:1", "--prompt", "a"],
                 ["--endpoint"]),
                (["generate", "--endpoint", "127.0.0.1:1", "--prompt", "a", "--kv-cache", "f32"],
                 ["--kv-cache f32", "--endpoint"]),
                (["generate", "--endpoint", "nowhere", "--prompt", "a"], ["nowhere"]),
                (["generate", "--model", GOOD_MODEL, "--prompt", "a", "--token-ids", "1"],
                 ["prompt"]),
                (["score", "--model", GOOD_MODEL], ["--tokens"]),
                (["tokenize", "--model", GOOD_MODEL], ["--input"]),
                (["tokenize", "--model", GOOD_MODEL, "--input", self.texts, "--special", "no"],
                 ["--special"])):
            with self.subTest(arguments=arguments):
                outcome = run(*arguments)
                self.assert_one_line(outcome, (USAGE,))
                for word in words:
                    self.assertIn(word, outcome.errors.lower(), str(outcome))

    def test_malformed_json_is_refused_by_name(self):
        for text in ("", "{", "[1,2", "[[1,2],3]", '{"sequences": 5}', '{"sequences": [[]]}',
                     '{"sequences": [["a"]]}', '{"sequences": [[1.5]]}', '{"sequences": [[288]]}',
                     '{"sequences": [[-1]]}', '{"sequences": [[99999999999999999999]]}', "null",
                     "[" * 100000, '{"sequences": [[%s]]}' % ("[" * 100000 + "]" * 100000)):
            path = os.path.join(self.folder, "wrong.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            with self.subTest(text=text[:40]):
                outcome = run("score", "--model", GOOD_MODEL, "--tokens", path, *SMALL)
                self.assertEqual(outcome.code, MALFORMED, str(outcome))
                self.assertEqual(len(outcome.error_lines()), 1, str(outcome))
                self.assertIn("wrong.json", outcome.error_lines()[0])
                outcome = run("tokenize", "--model", GOOD_MODEL, "--input", path)
                self.assert_one_line(outcome, (MALFORMED,))

    def test_lists_of_prompts_are_checked_whoever_answers_them(self):
        path = os.path.join(self.folder, "prompts.json")
        for text in ("[]", '[["a"]]', "[[1.5]]", "[[-1]]", "[[99999999999]]", "[5]", "[[[1]]]",
                     "[%s]" % ("[" * 100000 + "]" * 100000)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            # Nothing listens there; the list is refused before anybody asks.
            for target in (["--model", GOOD_MODEL] + SMALL, ["--endpoint", "127.0.0.1:1"]):
                with self.subTest(text=text[:40], target=target[0]):
                    outcome = run("generate", *target, "--prompt-file", path)
                    self.assertEqual(outcome.code, USAGE, str(outcome))
                    self.assertEqual(len(outcome.error_lines()), 1, str(outcome))
                    self.assertEqual(outcome.output, "", str(outcome))

    def test_deeply_nested_conversations_are_refused(self):
        path = os.path.join(self.folder, "chat.json")
        for deep in ("[" * 100000 + "]" * 100000, '{"a":' * 100000 + "1" + "}" * 100000):
            for text in ('{"messages": [{"role": "user", "content": %s}]}',
                         '{"messages": [], "tools": [%s]}', '{"messages": [], "x": %s}'):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text % deep)
                with self.subTest(text=text, deep=deep[:5]):
                    self.assert_one_line(run("render", "--model", GOOD_MODEL, "--input", path),
                                         (USAGE, MALFORMED))

    def test_input_that_is_no_file_is_refused(self):
        for path in (self.folder, "/dev/zero", "/dev/null"):
            for arguments in (["score", "--model", GOOD_MODEL, "--tokens", path] + SMALL,
                              ["tokenize", "--model", GOOD_MODEL, "--input", path],
                              ["render", "--model", GOOD_MODEL, "--input", path],
                              ["render", "--template", path, "--input", self.texts],
                              ["generate", "--model", GOOD_MODEL, "--prompt-file", path] + SMALL):
                if path == "/dev/null" and arguments[0] == "generate":
                    continue  # an empty prompt, which the begin token makes a good one
                with self.subTest(arguments=arguments[:1] + arguments[3:5]):
                    outcome = run(*arguments, seconds_max=30)
                    self.assertIn(outcome.code, (USAGE, MALFORMED), str(outcome))
                    self.assertEqual(len(outcome.error_lines()), 1, str(outcome))

    def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(self):
        ids = ",".join(["1"] * 70)
        outcome = run("generate", "--model", GOOD_MODEL, "--token-ids", ids, *SMALL)
        self.assertEqual(outcome.code, USAGE, str(outcome))
        self.assertEqual(len(outcome.error_lines()), 1, str(outcome))
        self.assertIn("70", outcome.error_lines()[0])
        self.assertIn("64", outcome.error_lines()[0])

    def test_a_benchmark_longer_than_the_context_is_refused_before_loading(self):
        outcome = run("bench", "--model", GOOD_MODEL, "--prompt-tokens", "120",
                      "--generate-tokens", "9")
        self.assert_one_line(outcome, (USAGE,))
        for number in ("120", "9", "128"):
            self.assertRegex(outcome.errors, r"\b%s\b" % number)
        outcome = run("bench", "--model", GOOD_MODEL, "--prompt-tokens", "16", "--depth", "110",
                      "--generate-tokens", "4")
        self.assert_one_line(outcome, (USAGE,))
        self.assertIn("--depth 110", outcome.errors)
        outcome = run("bench", "--model", GOOD_MODEL, "--prompt-tokens", "16", "--streams", "65",
                      "--generate-tokens", "4")
        self.assert_one_line(outcome, (USAGE,))
        self.assertIn("--sequences allows 64", outcome.errors)

    def test_what_is_wrong_with_a_job_is_said_once(self):
        if not shutil.which("mpirun") or "MPI: ON" not in must_run("--version").output:
            self.skipTest("no MPI")
        missing = os.path.join(self.folder, "missing.gguf")
        for flags, code, word in (
                (["--model", missing], MISSING, "missing.gguf"),
                (["--model", GOOD_MODEL, "--tensor", "2", "--threads", "-1"], USAGE, "threads")):
            for subcommand in (["score", "--tokens", self.tokens],
                               ["generate", "--token-ids", "1"], ["serve", "--listen",
                                                                  "127.0.0.1:0"]):
                with self.subTest(subcommand=subcommand[0], flags=flags):
                    outcome = run(*subcommand, *flags, before=MPIRUN + ["-n", "2"])
                    self.assertEqual(outcome.code, code, str(outcome))
                    self.assertEqual(len(outcome.error_lines()), 1, str(outcome))
                    self.assertIn(word, outcome.error_lines()[0])

    def test_quiet_means_that_only_the_answer_is_written(self):
        outcome = must_run("generate", "--model", GOOD_MODEL, "--token-ids", "1,2", *SMALL)
        self.assertEqual(outcome.errors, "")

    def test_render_keeps_integers_of_any_size(self):
        template = os.path.join(self.folder, "chat.jinja")
        with open(template, "w", encoding="utf-8") as file:
            file.write("{{ messages[0].content }}")
        number = 2**64 + 1
        chat = write_json(self.folder, "chat.json",
                          {"messages": [{"role": "user", "content": number}]})
        outcome = must_run("render", "--template", template, "--input", chat)
        self.assertEqual(outcome.output, str(number))

    def test_what_does_not_fit_in_memory_is_refused_before_it_is_taken(self):
        outcome = run("generate", "--model", GOOD_MODEL, "--token-ids", "1", "--threads", "1",
                      "--quiet", "--kv-tokens", "2000000000", seconds_max=30)
        self.assert_one_line(outcome, (DOES_NOT_FIT,))

    def test_more_ranks_than_query_heads_are_refused_with_both_numbers(self):
        outcome = run("score", "--model", GOOD_MODEL, "--tokens", self.tokens, "--tensor", "8",
                      *SMALL)
        self.assert_one_line(outcome, (USAGE,))
        self.assertIn("8", outcome.errors)
        self.assertIn("4", outcome.errors)
        self.assertIn("heads", outcome.errors)

    def test_output_that_cannot_be_written_is_named(self):
        outcome = run("score", "--model", GOOD_MODEL, "--tokens", self.tokens, "--logits",
                      os.path.join(self.folder, "none", "out.safetensors"), *SMALL)
        self.assertEqual(outcome.code, 74, str(outcome))
        self.assertIn("out.safetensors", outcome.error_lines()[0])


if __name__ == "__main__":
    command_line.main()

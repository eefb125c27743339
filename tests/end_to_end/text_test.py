#!/usr/bin/python3
"""The text side by the command line: tokenizers of every kind and chat templates.

Expected ids, texts and renderings come from the fixtures, which say whom each of them follows. What
is not in tests/data is read from $TRIREME_FIXTURES or ../shared/fixtures; one line says what a test
goes without when it is not there.
"""

import glob
import json
import os
import shutil
import tempfile
import unittest
import zlib

import command_line
from command_line import DATA, MALFORMED, OK, ROOT, must_run, read_json, run, write_json

ELSEWHERE = os.environ.get("TRIREME_FIXTURES") or os.path.join(ROOT, "..", "shared", "fixtures")
# A hostile template must end by itself; the rest is for starting the program on a busy machine.
HOSTILE_SECONDS_MAX = 20
# 64 MiB, and what starting the program takes by itself.
HOSTILE_BYTES_MAX = 96 << 20


def fixture(name):
    """The path of a fixture, or None."""
    for root in (DATA, ELSEWHERE):
        path = os.path.join(root, name)
        if os.path.exists(path):
            return path
    print("fixtures/%s is not there" % name)
    return None


def tokenizer_folders(file_name):
    """Every folder of fixtures/tokenizers that holds the file: {name: path}."""
    found = {}
    for root in (ELSEWHERE, DATA):
        pattern = os.path.join(root, "tokenizers", "**", file_name)
        for path in glob.glob(pattern, recursive=True):
            folder = os.path.dirname(path)
            found[os.path.relpath(folder, os.path.join(root, "tokenizers"))] = folder
    return found


class Case:
    """One row of cases.json, with what absent keys mean filled in."""

    def __init__(self, row):
        self.text = row["text"]
        self.ids = row["ids"]
        self.ids_text = row.get("ids_text", self.ids)
        self.ids_plain = row.get("ids_plain", self.ids_text)
        self.decoded = row.get("decoded_literal", row.get("decoded", self.text))
        self.decoded_skip = row.get("decoded_skip", self.decoded)


class TextTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def list_of(self, subcommand, model, entries, *flags):
        path = write_json(self.folder, "list.json", entries)
        return must_run(subcommand, "--model", model, "--input", path, *flags).json()

    def assert_rows(self, got, wanted, cases, what):
        self.assertEqual(len(got), len(wanted), what)
        wrong = [index for index in range(len(got)) if got[index] != wanted[index]]
        shown = ["%r: got %r, wanted %r" % (cases[index].text[:60], got[index], wanted[index])
                 for index in wrong[:4]]
        self.assertEqual(wrong, [], "%s: %d of %d rows: %s" % (
            what, len(wrong), len(got), "; ".join(shown)))

    def check_tokenizer(self, model, head, has_added_tokens):
        cases = [Case(row) for row in head["cases"]]
        texts = [case.text for case in cases]
        ids = [case.ids for case in cases]
        self.assert_rows(self.list_of("tokenize", model, texts, "--no-bos"), ids, cases, "ids")
        self.assert_rows(self.list_of("tokenize", model, texts),
                         [head.get("prefix_ids", []) + row + head.get("suffix_ids", [])
                          for row in ids], cases, "ids with what stands around a text")
        self.assert_rows(self.list_of("detokenize", model, ids),
                         [case.decoded for case in cases], cases, "decoded")
        if has_added_tokens:
            self.assert_rows(self.list_of("tokenize", model, texts, "--no-bos", "--special",
                                          "text"), [case.ids_text for case in cases], cases,
                             "ids_text")
            self.assert_rows(self.list_of("tokenize", model, texts, "--no-bos", "--special",
                                          "plain"), [case.ids_plain for case in cases], cases,
                             "ids_plain")
            self.assert_rows(self.list_of("detokenize", model, ids, "--skip-special"),
                             [case.decoded_skip for case in cases], cases, "decoded_skip")

    def test_tokenizer_json_gives_the_ids_and_texts_of_the_library(self):
        for name, folder in sorted(tokenizer_folders("tokenizer.json").items()):
            with self.subTest(tokenizer=name):
                self.check_tokenizer(os.path.join(folder, "tokenizer.json"),
                                     read_json(os.path.join(folder, "cases.json")), True)

    def test_tokenizer_model_gives_the_ids_and_texts_of_the_library(self):
        for name, folder in sorted(tokenizer_folders("tokenizer.model").items()):
            with self.subTest(tokenizer=name):
                self.check_tokenizer(os.path.join(folder, "tokenizer.model"),
                                     read_json(os.path.join(folder, "cases.json")), False)

    def test_gguf_vocabularies_give_the_ids_of_their_engine(self):
        for name, folder in sorted(tokenizer_folders("tokenizer.gguf").items()):
            with self.subTest(tokenizer=name):
                self.check_tokenizer(os.path.join(folder, "tokenizer.gguf"),
                                     read_json(os.path.join(folder, "cases.gguf.json")), False)

    def test_a_folder_gives_its_tokenizer_and_template(self):
        source = fixture("families/tiny_tokenizer")
        if source is None:
            return
        for path in glob.glob(os.path.join(source, "*")):
            shutil.copy(path, self.folder)
        chat = write_json(self.folder, "chat.json",
                          {"messages": [{"role": "user", "content": "on the one"}],
                           "add_generation_prompt": True})
        outcome = must_run("render", "--model", self.folder, "--input", chat)
        self.assertEqual(outcome.output, "<|begin|><|user|>on the one<|assistant|>")
        self.assertEqual(self.list_of("tokenize", self.folder, ["<|begin|><|end|>"], "--no-bos"),
                         [[316, 317]])
        self.assertEqual(self.list_of("detokenize", self.folder, [[316, 317]]),
                         ["<|begin|><|end|>"])

    def test_broken_and_unsupported_files_are_refused_in_one_line(self):
        path = fixture("tokenizers/parts/refuse.json")
        if path is None:
            return
        file = read_json(path)
        texts = write_json(self.folder, "texts.json", ["abc"])
        for case in file["cases"]:
            with self.subTest(case=case["name"]):
                tokenizer = os.path.join(self.folder, "tokenizer.json")
                with open(tokenizer, "w", encoding="utf-8") as output:
                    output.write(refused_file(file["base"], case))
                outcome = run("tokenize", "--model", tokenizer, "--input", texts)
                codes = {"accept": (OK,), "refuse": (MALFORMED,), "either": (OK, MALFORMED)}
                self.assertIn(outcome.code, codes[case["trireme"]], str(outcome))
                self.assertEqual(len(outcome.errors.splitlines()), int(outcome.code != OK),
                                 str(outcome))
                if case["trireme"] == "accept":
                    self.assertEqual(outcome.json(), [[4]])

    def test_C9_a_tokenizer_cut_at_any_place_is_refused(self):
        for name in ("trained/sp-bpe/tokenizer.model", "trained/unk-fused/tokenizer.json"):
            path = fixture("tokenizers/" + name)
            if path is None:
                continue
            with open(path, "rb") as file:
                content = file.read()
            texts = write_json(self.folder, "texts.json", ["abc"])
            cut_path = os.path.join(self.folder, os.path.basename(path))
            for share in range(1, 12):
                with open(cut_path, "wb") as file:
                    file.write(content[:len(content) * share // 12])
                outcome = run("tokenize", "--model", cut_path, "--input", texts)
                self.assertEqual(outcome.code, MALFORMED, str(outcome))
                self.assertEqual(len(outcome.errors.splitlines()), 1, str(outcome))

    def test_streams_deliver_the_pieces_of_the_reference(self):
        path = fixture("tokenizers/parts/streaming.json")
        if path is None:
            return
        checked = 0
        for case in read_json(path)["cases"]:
            if "tokenizer" not in case:
                continue
            model = fixture("tokenizers/" + case["tokenizer"])
            if model is None:
                continue
            flags = ["--continuation"] if case.get("continuation") else []
            with self.subTest(case=case["name"]):
                got = self.list_of("detokenize", model, [case["ids"]], "--stream", *flags)[0]
                self.assertEqual(got["pieces"], case["pieces"])
                self.assertEqual(got["flush"], case["flush"])
            checked += 1
        print("%d streams" % checked)

    def test_bytes_that_are_no_text_become_replacements(self):
        path = fixture("tokenizers/parts/invalid-utf8.json")
        if path is None:
            return
        cases = read_json(path)["cases"]
        for name in sorted(cases[0]["ids"]):
            model = fixture("tokenizers/%s/tokenizer.json" % name)
            if model is None:
                continue
            with self.subTest(tokenizer=name):
                got = self.list_of("tokenize", model, {"cases": cases}, "--no-bos")
                self.assertEqual(got, [case["ids"][name] for case in cases])

    def test_hostile_repetitions_give_the_counts_of_the_reference(self):
        path = fixture("tokenizers/parts/hostile.json")
        if path is None:
            return
        file = read_json(path)
        for name in sorted({key for case in file["cases"] for key in case["tokens"]}):
            folder, kind = name.rsplit(".", 1)
            model = fixture("tokenizers/%s/tokenizer.%s" % (folder, kind))
            if model is None:
                continue
            with self.subTest(tokenizer=name):
                cases = [case for case in file["cases"] if name in case["tokens"]]
                texts = [hostile_text(file, case, folder, size)
                         for case in cases for size in file["sizes_bytes"]]
                got = self.list_of("tokenize", model, texts, "--no-bos")
                counts = [len(ids) for ids in got]
                wanted = [count for case in cases for count in case["tokens"][name]]
                self.assertEqual(counts, wanted)

    def test_every_code_point_normalizes_like_the_library(self):
        path = fixture("tokenizers/parts/normalization.json")
        if path is None:
            return
        file = read_json(path)
        characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
        for form, wanted in sorted(file["all_code_points"].items()):
            with self.subTest(form=form):
                tokenizer = write_json(self.folder, "tokenizer.json", byte_tokenizer(form))
                results = []
                for ids in self.list_of("tokenize", tokenizer, characters):
                    results.append(bytes(ids))
                self.assertEqual(sum(result != character.encode("utf-8")
                                     for result, character in zip(results, characters)),
                                 wanted["changed"])
                self.assertEqual("%08x" % zlib.crc32(b"".join(result + b"\xff"
                                                              for result in results)),
                                 wanted["crc32"])
                texts = [case["text"] for case in file["cases"]]
                got = [bytes(ids).decode("utf-8")
                       for ids in self.list_of("tokenize", tokenizer, texts)]
                self.assertEqual(got, [case.get(form, case["text"]) for case in file["cases"]])

    def render(self, template, cases):
        path = os.path.join(self.folder, "template.jinja")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(template)
        return must_run("render", "--template", path, "--input",
                        write_json(self.folder, "cases.json", cases)).json()

    def assert_outcome(self, got, case, key):
        if "error" not in case:
            self.assertEqual(got, {"text": case[key]})
            return
        self.assertEqual(set(got) - {"message"}, {"error"})
        raised = case["error"] == "raised by the template"
        self.assertEqual("message" in got, raised)
        if raised:
            self.assertEqual(got["message"], case["message"])
            self.assertIn(case["message"], got["error"])

    def test_published_templates_render_like_the_library(self):
        checked = 0
        for path in sorted(glob.glob(os.path.join(ELSEWHERE, "templates", "*", "cases.json"))):
            template = os.path.join(os.path.dirname(path), "template.jinja")
            got = must_run("render", "--template", template, "--input", path).json()
            cases = read_json(path)["cases"]
            self.assertEqual(len(got), len(cases))
            for outcome, case in zip(got, cases):
                with self.subTest(template=template, case=case["name"]):
                    self.assert_outcome(outcome, case, "expected")
            checked += len(cases)
        print("%d renderings" % checked)

    def test_snippets_of_the_language_mean_what_the_library_says(self):
        path = fixture("templates/language.json")
        if path is None:
            return
        file = read_json(path)
        got = self.render("", file)
        self.assertEqual(len(got), len(file["cases"]))
        for outcome, case in zip(got, file["cases"]):
            with self.subTest(template=case["template"]):
                self.assert_outcome(outcome, case, "out")

    def test_hostile_templates_end_by_themselves(self):
        path = fixture("templates/hostile.json")
        if path is None:
            return
        for case in read_json(path)["cases"]:
            template = case.get("template")
            if template is None:
                template = "".join(part if isinstance(part, str) else part[0] * part[1]
                                   for part in case["template_recipe"])
            template_path = os.path.join(self.folder, "template.jinja")
            with open(template_path, "w", encoding="utf-8") as file:
                file.write(template)
            chat_path = os.path.join(self.folder, "chat.json")
            with open(chat_path, "w", encoding="utf-8") as file:
                deep = ', "x": ' + "[" * 100000 + "]" * 100000 if "vars_recipe" in case else ""
                file.write('{"vars": %s%s}' % (json.dumps(case.get("vars", {})), deep))
            with self.subTest(case=case["name"]):
                outcome = run("render", "--template", template_path, "--input", chat_path,
                              seconds_max=HOSTILE_SECONDS_MAX, data_bytes_max=HOSTILE_BYTES_MAX)
                self.assertIn(outcome.code, (OK, MALFORMED), str(outcome))
                self.assertEqual(len(outcome.errors.splitlines()), int(outcome.code != OK))


def refused_file(base, case):
    """The text of a broken tokenizer.json: a text of its own, or the base with one value changed."""
    if "file" in case:
        return case["file"]
    file = json.loads(json.dumps(base))
    path = case["path"]
    if path:
        place = file
        for key in path[:-1]:
            place = place[key]
        if case["value"] == "__del__":
            del place[path[-1]]
        else:
            place[path[-1]] = case["value"]
    return json.dumps(file)


def hostile_text(file, case, folder, size):
    unit = case["unit"] if case["unit"] is not None else file["special_of"][folder]
    head = ""
    if isinstance(unit, list):
        head, unit = unit
    rest = size - len(head.encode("utf-8"))
    return head + unit * (rest // len(unit.encode("utf-8")))


def byte_tokenizer(normalizer):
    """A tokenizer.json whose ids are the bytes of the normalized text."""
    own = list(range(0x21, 0x7f)) + list(range(0xa1, 0xad)) + list(range(0xae, 0x100))
    others = [byte for byte in range(256) if byte not in own]
    vocabulary = {chr(byte): byte for byte in own}
    vocabulary.update({chr(0x100 + index): byte for index, byte in enumerate(others)})
    return {"version": "1.0", "added_tokens": [], "normalizer": {"type": normalizer},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            "post_processor": None, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}


if __name__ == "__main__":
    command_line.main()

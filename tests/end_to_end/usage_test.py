#!/usr/bin/python3
"""Every documented command, called wrongly: a line on stderr that says what was wrong, a documented
exit code, never a stack trace. And docs/errors.md against the code and the tests: equal sets.

Needs nothing but the program: no model, no MPI, no network.
"""

import glob
import os
import pwd
import re
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("TRIREME_PROGRAM", os.path.join(ROOT, "build/release/trireme"))
OK, USAGE, BAD_FILE, MISSING, LOST, INTERNAL = 0, 64, 65, 66, 69, 70
SYSTEM, TOO_LARGE, TAKEN, INPUT_OUTPUT = 71, 72, 73, 74
STALLED, DISAGREE, PERMISSION, CONFIGURATION = 75, 76, 77, 78
TRACE = re.compile(r"terminate called|Segmentation|Traceback|check failed|backtrace|#0 |0x[0-9a-f]{8}|"
                   r"Aborted|std::|what\(\)")
# What takes a topology file, with the words around its path.
FILE_COMMANDS = {"plan": [], "check": [], "up": ["--plain"], "status": [], "top": ["--rounds", "1"],
                 "drain": ["r1"], "why": []}
# What takes a model.
MODEL_COMMANDS = {
    "generate": ["--prompt", "x"], "chat": [], "serve": ["--listen", "127.0.0.1:0"],
    "balance": ["--listen", "127.0.0.1:0", "--replicas", "r1=127.0.0.1:1"], "bench": [],
    "tokenize": ["--input", "/dev/null"], "detokenize": ["--input", "/dev/null"],
    "render": ["--input", "/dev/null"],
    "score": ["--tokens", "/dev/null"], "inspect": []}

OTHER_COMMANDS = {"synthesize"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def run(*words, user=None):
    return subprocess.run([PROGRAM] + list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, user=user,
                          encoding="utf-8", errors="replace")


def subcommands():
    return re.findall(r"^  (\w+) ", run("--help").stdout, re.M)


def flags_of(command):
    return re.findall(r"^  --([a-z-]+) ", run(command, "--help").stdout, re.M)


def documented_commands():
    """Every word after the program's name in a command of a documentation page."""
    words = set()
    for path in ["README.md"] + glob.glob(os.path.join(ROOT, "docs", "*.md")):
        text = read(path)
        for code in re.findall(r"^    ([^\n]+)$", text, re.M) + re.findall(r"`([^`\n]+)`", text):
            words.update(re.findall(r"\btrireme ([a-z]+)\b", code))
    return words


class UsageTest(unittest.TestCase):
    def check(self, done, codes):
        text = "%s\n%s" % (done.args, done.stdout + done.stderr)
        self.assertIn(done.returncode, codes, text)
        self.assertNotRegex(done.stdout + done.stderr, TRACE, text)
        if done.returncode != OK:
            self.assertNotEqual(done.stderr.strip(), "", text)
            self.assertEqual(done.stdout, "", text)

    def model_words(self, command, path):
        return ([path] if command == "inspect" else ["--model", path]) + MODEL_COMMANDS[command]

    def file_words(self, command, path):
        before = ["id"] if command == "why" else []
        return before + [path] + FILE_COMMANDS[command]

    def test_G1_documented_commands_are_those_of_the_program(self):
        known = subcommands()
        self.assertEqual(sorted(documented_commands() - set(known)), [])
        self.assertEqual(sorted(set(known) - set(FILE_COMMANDS) - set(MODEL_COMMANDS) -
                                OTHER_COMMANDS), [],
                         "commands that the tests here do not know")

    def test_G1_help_shows_usage_flags_and_an_example(self):
        for words in ([], ["--help"], ["help"]):
            done = run(*words)
            self.check(done, [OK if words else USAGE])
            self.assertIn("Usage: trireme SUBCOMMAND", done.stdout + done.stderr)
        for command in subcommands():
            with self.subTest(command=command):
                done = run(command, "--help")
                self.check(done, [OK])
                self.assertIn("Usage: trireme %s" % command, done.stdout)
                self.assertIn("Example: ", done.stdout)
                self.assertEqual(done.stderr, "")
                # In vain among other words, too.
                self.assertEqual(run(command, "--nonsense", "--help").returncode, OK)

    def test_G1_wrong_words_and_flags_are_named(self):
        done = run("nonsense")
        self.check(done, [USAGE])
        self.assertIn("nonsense", done.stderr)
        for command in subcommands():
            for words, named in ((["--no-such-flag"], "--no-such-flag"), (["-x"], "-x"),
                                 (["a", "b", "c", "d"], "words that are no flags"),
                                 (["--no-such-flag=1"], "--no-such-flag")):
                with self.subTest(command=command, words=words):
                    done = run(command, *words)
                    self.check(done, [USAGE])
                    self.assertIn(named, done.stderr)
                    self.assertIn("trireme %s" % command, done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1)

    def test_G1_every_flag_refuses_nonsense_and_a_missing_value(self):
        for command in subcommands():
            for flag in flags_of(command):
                with self.subTest(command=command, flag=flag):
                    done = run(command, "--" + flag + "=\x01nonsense", "--no-such-flag")
                    self.check(done, [USAGE])  # of the value, or of the flag after a text
                    if (command, flag) != ("check", "host-report"):  # needs nothing else
                        self.check(run(command, "--" + flag), [USAGE])

    def test_G1_without_a_file_the_command_says_what_it_wants(self):
        for command in subcommands():
            with self.subTest(command=command):
                self.check(run(command), [USAGE])

    def bad_files(self, folder):
        """(path, what it is, the codes it may give as a topology file, and as a model)"""
        garbage = os.path.join(folder, "garbage")
        with open(garbage, "wb") as file:
            file.write(b"\x00\xff: [garbage" * 10)
        empty = os.path.join(folder, "empty")
        open(empty, "wb").close()
        return [(os.path.join(folder, "absent"), "absent", [MISSING], [MISSING]),
                (garbage, "garbage", [CONFIGURATION], [BAD_FILE]),
                (empty, "empty", [CONFIGURATION], [BAD_FILE]),
                (folder, "a folder", [MISSING], [BAD_FILE, MISSING, INPUT_OUTPUT]),
                ("/dev/zero", "endless", [CONFIGURATION, MISSING], [BAD_FILE, INPUT_OUTPUT])]

    def test_G1_unusable_files_are_named_with_a_documented_code(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, kind, as_topology, as_model in self.bad_files(folder):
                for command in FILE_COMMANDS:
                    if kind == "endless":
                        continue
                    with self.subTest(command=command, file=kind):
                        done = run(command, *self.file_words(command, path))
                        self.check(done, as_topology)
                        self.assertIn(path, done.stderr)
                for command in MODEL_COMMANDS:
                    with self.subTest(command=command, model=kind):
                        done = run(command, *self.model_words(command, path))
                        # Some want their other file first.
                        self.check(done, as_model + [USAGE, BAD_FILE, MISSING])

    def test_G1_files_that_may_not_be_read_are_not_permitted(self):
        if os.geteuid() != 0:
            user = None
        else:
            user = pwd.getpwnam("nobody").pw_uid
            if subprocess.run(["test", "-x", PROGRAM], user=user, check=False).returncode != 0:
                self.skipTest("the program cannot be started by an unprivileged user here")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            path = os.path.join(folder, "secret")
            with open(path, "w", encoding="utf-8") as file:
                file.write("version: 1\n")
            os.chmod(path, 0)
            for command in FILE_COMMANDS:
                with self.subTest(command=command):
                    self.check(run(command, *self.file_words(command, path), user=user),
                               [PERMISSION])
            for command in ("generate", "serve", "balance", "inspect", "bench"):
                with self.subTest(command=command):
                    self.check(run(command, *self.model_words(command, path), user=user),
                               [PERMISSION])


def table(page, title):
    """The first column of the first table after a title."""
    part = page[page.index(title):] + "\n\n"
    part = part[:part.index("\n\n", part.index("|---"))]
    return re.findall(r"^\| `?(\w+)`? \|", part, re.M)[1:]


def expectations(name):
    """Test files with an expectation of the reason: not what only passes it in."""
    found = []
    symbol = {value: key for key, value in re.findall(
        r'(kReason\w+) = "(\w+)"', read("runtime/base/error_reason.h"))}[name]
    word = re.compile(r'\b%s\b|"%s"' % (symbol, name))
    expects = re.compile(r"EXPECT_|ASSERT_|\bassert|Reason\(|check_statuses|[Ff]ails?With|Refuse")
    for path in glob.glob(os.path.join(ROOT, "tests", "**", "*_test.*"), recursive=True):
        # These try the table itself, with reasons of their own making.
        if path.endswith(("error_reason_test.cc", "grpc_status_test.cc", "usage_test.py")):
            continue
        lines = read(path).split("\n")
        for index, line in enumerate(lines):
            if word.search(line) and "WithReason(" not in line and expects.search(
                    "\n".join(lines[max(0, index - 3):index + 1])):
                found.append(os.path.relpath(path, ROOT))
                break
    return found


class ErrorsTest(unittest.TestCase):
    """docs/errors.md, the code and the tests."""

    def setUp(self):
        self.page = read("docs/errors.md")
        self.answered = table(self.page, "## Statuses of the service")
        self.reserved = table(self.page, "## Reserved reasons")

    def test_G3_the_reasons_of_the_page_are_those_of_the_code(self):
        of_code = re.findall(r'kReason\w+ = "(\w+)"', read("runtime/base/error_reason.h"))
        self.assertEqual(sorted(self.answered + self.reserved), sorted(of_code))

    def test_G3_every_reason_is_expected_by_a_test(self):
        self.assertEqual([name for name in self.answered if not expectations(name)], [])

    def test_G3_reserved_reasons_are_given_by_no_code(self):
        symbols = dict(map(reversed, re.findall(r'(kReason\w+) = "(\w+)"',
                                                read("runtime/base/error_reason.h"))))
        code = "".join(read(path) for folder in ("runtime", "launcher") for path in glob.glob(
            os.path.join(ROOT, folder, "**", "*.cc"), recursive=True)
            if not path.endswith(("error_reason.cc", "grpc_status.cc")))
        self.assertEqual([name for name in self.reserved
                          if re.search(r"\b%s\b" % symbols[name], code)], [])

    def test_G3_the_exit_codes_of_the_page_are_those_of_the_code(self):
        of_code = re.findall(r"^  k\w+ = (\d+),", read("launcher/exit_codes.h"), re.M)
        self.assertEqual(table(self.page, "## Exit codes of processes"), of_code)

    def test_G3_every_exit_code_is_produced(self):
        with tempfile.TemporaryDirectory() as folder:
            garbage = os.path.join(folder, "garbage")
            with open(garbage, "w", encoding="utf-8") as file:
                file.write("GGUF: [")
            tiny = os.path.join(ROOT, "tests/data/gguf-files/good/base-bpe.gguf")
            faults = os.path.join(folder, "faults")
            os.makedirs(faults)
            with open(os.path.join(faults, "rank-0"), "w", encoding="utf-8") as file:
                file.write("fail at load")
            topology = os.path.join(folder, "fleet.yaml")
            with open(topology, "w", encoding="utf-8") as file:
                file.write("version: 1\nname: t\nmodel: {path: \"%s\"}\nnodes: {n: {}}\n"
                           "replicas:\n  r1:\n    stages: [{node: n, ranks: 1, threads: 1}]\n"
                           "    engine: {listen: \"127.0.0.1:1\"}\n    launcher: none\n"
                           "observe: {admin: \"unix:/proc/none/admin.sock\"}\n" % tiny)
            with socket.create_server(("127.0.0.1", 0)) as listener:
                taken = "127.0.0.1:%d" % listener.getsockname()[1]
                produced = {
                    OK: run("--version"),
                    USAGE: run("nonsense"),
                    BAD_FILE: run("inspect", garbage),
                    MISSING: run("inspect", os.path.join(folder, "absent")),
                    LOST: run("status", "--admin", "unix:" + os.path.join(folder, "absent.sock")),
                    INTERNAL: run("serve", "--model", tiny, "--listen", "127.0.0.1:0",
                                  "--fault-injection", faults),
                    TOO_LARGE: run("generate", "--model", tiny, "--token-ids", "1", "--kv-tokens",
                                   "2000000000"),
                    TAKEN: run("serve", "--model", tiny, "--listen", taken),
                    INPUT_OUTPUT: run("up", "--plain", topology),
                    CONFIGURATION: run("check", garbage),
                }
                for code, done in produced.items():
                    self.assertEqual(done.returncode, code, "%s\n%s" % (done.args, done.stderr))
                limited = subprocess.run(
                    ["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh", PROGRAM, "up", "--plain",
                     topology], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60,
                    check=False)
                self.assertEqual(limited.returncode, SYSTEM, limited.stderr)
            produced = set(produced) | {SYSTEM}
        # Those that need several ranks or another user stand in tests of their own.
        elsewhere = {STALLED: ("rank_faults_test.py", "wait_for_exit(20), STALLED"),
                     DISAGREE: ("disagreement_test.py", "returncode, DISAGREE"),
                     PERMISSION: ("usage_test.py", "[PERMISSION]")}
        for code, (name, text) in elsewhere.items():
            self.assertIn(text, read("tests/end_to_end/" + name))
            produced.add(code)
        self.assertEqual(sorted(produced), sorted(
            int(code) for code in table(self.page, "## Exit codes of processes")))


if __name__ == "__main__":
    if not os.path.exists(PROGRAM):
        raise SystemExit("TRIREME_PROGRAM names no program: " + PROGRAM)
    unittest.main(verbosity=2)

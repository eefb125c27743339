"""What the end-to-end tests share: the program, its files, and how they are read.

The program is named by the environment variable TRIREME_PROGRAM. Nothing but the standard library
is needed. A test prints one line and skips what needs a file that is not there.
"""

import array
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "data")
PROGRAM = os.environ.get("TRIREME_PROGRAM", "")

# Exit codes, as docs/errors.md lists them.
OK, USAGE, MALFORMED, MISSING, INTERNAL, DOES_NOT_FIT = 0, 64, 65, 66, 70, 72

# Ranks of a job on one machine with fewer cores than ranks, started by root or not.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


class Outcome:
    """What one run of the program gave."""

    def __init__(self, arguments, code, output, errors, seconds):
        self.arguments = arguments
        self.code = code          # negative: ended by that signal; None: past its time limit
        self.output = output      # text
        self.errors = errors      # text
        self.seconds = seconds

    def json(self):
        return json.loads(self.output)

    def json_lines(self):
        return [json.loads(line) for line in self.output.splitlines()]

    def error_lines(self):
        return [line for line in self.errors.splitlines() if line.startswith("trireme: ")]

    def __str__(self):
        return "%s\n  exit code %s after %.2f s\n  stdout: %s\n  stderr: %s" % (
            " ".join(self.arguments), self.code, self.seconds, self.output[:500],
            self.errors[:2000])


def run(*arguments, seconds_max=60, data_bytes_max=None, before=(), environment=None,
        folder=ROOT):
    """Runs the program, with `before` (such as mpirun) in front of it, and waits for it.

    `data_bytes_max` limits the memory that the process may write to.
    """
    command = list(before) + [PROGRAM] + [str(argument) for argument in arguments]

    def set_limits():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if data_bytes_max is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (data_bytes_max, data_bytes_max))

    begin = time.monotonic()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=folder, env=dict(os.environ, **(environment or {})), preexec_fn=set_limits,
        start_new_session=True)
    try:
        output, errors = process.communicate(timeout=seconds_max)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        code = None
    return Outcome(command, code, output.decode("utf-8", "replace"),
                   errors.decode("utf-8", "replace"), time.monotonic() - begin)


def must_run(*arguments, **options):
    """The same, where anything but success fails the test."""
    outcome = run(*arguments, **options)
    if outcome.code != OK:
        raise AssertionError(str(outcome))
    return outcome


def read_safetensors(path):
    """{name: (type, shape, memoryview of the bytes)}."""
    with open(path, "rb") as file:
        content = file.read()
    header_bytes, = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + header_bytes])
    data = memoryview(content)[8 + header_bytes:]
    return {name: (entry["dtype"], entry["shape"],
                   data[entry["data_offsets"][0]:entry["data_offsets"][1]])
            for name, entry in header.items() if name != "__metadata__"}


def numbers(tensor):
    """The numbers of a tensor of read_safetensors, flat."""
    kind, _, data = tensor
    values = array.array({"F32": "f", "F64": "d", "I32": "i"}[kind])
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)
    return path


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def score(model, sequences, folder, *flags, **options):
    """Runs `score`: ([{logprobs, argmax}], path of the logits)."""
    tokens = write_json(folder, "tokens.json", {"sequences": sequences})
    logits = os.path.join(folder, "logits.safetensors")
    outcome = must_run("score", "--model", model, "--tokens", tokens, "--logits", logits, "--json",
                       "--quiet", *flags, **options)
    return outcome.json()["sequences"], logits


def generate(model, prompts, folder, *flags, **options):
    """Runs `generate` on a list of texts or id lists as one batch: a list of token id lists."""
    path = write_json(folder, "prompts.json", prompts)
    outcome = must_run("generate", "--model", model, "--prompt-file", path, "--json", "--quiet",
                       *flags, **options)
    return [line["token_ids"] for line in outcome.json_lines()]


def kept_model(variable, name):
    """Path of a published model, or skips the test with one line."""
    path = os.environ.get(variable) or os.path.expanduser(os.path.join("~/.cache/trireme", name))
    if not os.path.exists(path):
        print("%s is not there (%s names another place); skipped" % (path, variable))
        raise unittest.SkipTest("no model file")
    return path


def default_model():
    """SmolLM2, which launcher/default_model.sh fetches."""
    return kept_model("TRIREME_MODEL", "SmolLM2-135M-Instruct.Q4_1.gguf")


def gemma3_model():
    """Gemma 3 270M, which launcher/gemma3_model.sh fetches."""
    return kept_model("TRIREME_GEMMA3_MODEL", "gemma-3-270m-q4_k_m.gguf")


def main():
    if not PROGRAM:
        print("TRIREME_PROGRAM must name the program, as in TRIREME_PROGRAM=build/release/trireme")
        sys.exit(USAGE)
    unittest.main(verbosity=2)

#!/usr/bin/python3
"""Texts made to be slow, for every tokenizer of a folder: `tokenizer_speed` over one unit repeated.

    ninja -C build/release tokenizer_speed
    tests/benchmarks/tokenizer_hostile.py FIXTURES/tokenizers [MiB] [NAME...]

The units are those of parts/hostile.json; the tokenizers are those of the folders beside it (NAME: of
some), in each of their files. Prints ms of processor time per MiB of text, the slowest first; "parsed"
is with the spellings of special tokens read as those, "calls" in calls of 4 KiB. Goal: at most 50.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("TRIREME_TOKENIZER_SPEED",
                         "build/release/tests/benchmarks/tokenizer_speed")
FILES = ("tokenizer.json", "tokenizer.gguf", "tokenizer.model")
GOAL = 50


def text_of(unit, size):
    head, unit = unit if isinstance(unit, list) else ("", unit)
    head, unit = head.encode(), unit.encode()
    return head + unit * ((size - len(head)) // len(unit))


def write_texts(recipes, special, size, folder):
    """The file of each recipe's text; without those that need a special token where none is named."""
    paths = {}
    for index, case in enumerate(recipes):
        unit = case["unit"] if case["unit"] is not None else special
        if unit is None:
            continue
        paths[case["name"]] = os.path.join(folder, str(index))
        with open(paths[case["name"]], "wb") as file:
            file.write(text_of(unit, size))
    return paths


def measure(model, paths):
    """[whole, in calls, parsed] in ms per MiB for each recipe."""
    output = subprocess.run([PROGRAM, model] + list(paths.values()), check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    speeds = [1048.576 / float(speed) for speed in re.findall(r"call.*: ([0-9.]+) MB/s", output)]
    return {name: speeds[3 * i:3 * i + 3] for i, name in enumerate(paths)}


def main():
    root = sys.argv[1]
    size = int(float(sys.argv[2]) * 1048576) if len(sys.argv) > 2 else 2097152
    with open(os.path.join(root, "parts/hostile.json"), encoding="utf-8") as file:
        hostile = json.load(file)
    names = sys.argv[3:] or sorted(os.listdir(root))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            paths = write_texts(hostile["cases"], hostile["special_of"].get(name), size, folder)
            for model in (os.path.join(root, name, file) for file in FILES):
                if os.path.exists(model):
                    print("measuring", model, file=sys.stderr, flush=True)
                    place = os.path.relpath(model, root)
                    rows += [(speeds, place, recipe)
                             for recipe, speeds in measure(model, paths).items()]
    rows.sort(key=lambda row: -max(row[0]))
    print("ms/MiB whole  calls parsed")
    for speeds, place, recipe in rows:
        print("      %6.1f %6.1f %6.1f  %s: %s" % (*speeds, place, recipe))
    slow = sum(max(speeds) > GOAL for speeds, _, _ in rows)
    print("%d of %d take more than %d ms/MiB" % (slow, len(rows), GOAL))


if __name__ == "__main__":
    main()

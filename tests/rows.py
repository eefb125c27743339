#!/usr/bin/python3
"""How many rows of the fault list (docs/faults.md) were green in the last run of ctest.

    tests/rows.py [LOG]    LOG: ctest's log, build/release/Testing/Temporary/LastTest.log by default

A test says in its name which rows it shows: `test_E1_E2_...` in Python, `TEST(..., F7_...)` in C++.
A row is green when at least one test names it and every test that does passed in this run: one that
failed, was skipped or did not run makes its rows not green. Exit code 1 if a row is not green in a
log that has every test.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROW = r"[A-G][0-9]{1,2}"
NAMED = r"(?:%s_)+" % ROW
PYTHON_TEST = re.compile(r"^\s*def (test_(%s)\w+)" % NAMED, re.M)
GTEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*((%s)\w+)" % NAMED, re.M)
PASSED, FAILED, SKIPPED, NOT_RUN = "passed", "failed", "skipped", "not run"


def rows_of(name):
    """["E1", "E2"] of "test_E1_E2_streams_survive"."""
    return re.findall(ROW, re.match(r"(?:test_)?(%s)" % NAMED, name).group(1))


def wanted_rows(page):
    """The rows of the page's table, in its order."""
    return re.findall(r"^\| (%s) \|" % ROW, page, re.M)


def named_tests(files):
    """{test's name: file} from {path: text}. Names of Python tests are unique among their files,
    those of C++ are Suite.Name."""
    found = {}
    for path, text in files.items():
        if path.endswith(".py"):
            found.update({match[0]: path for match in PYTHON_TEST.findall(text)})
        else:
            found.update({"%s.%s" % match[:2]: path for match in GTEST.findall(text)})
    return found


def sections(log):
    """(name of the ctest test, its output) of a log of ctest."""
    for part in re.split(r"^\d+/\d+ Testing: ", log, flags=re.M)[1:]:
        name, _, rest = part.partition("\n")
        output = re.search(r"^Output:\n-+\n(.*?)<end of output>", rest, re.M | re.S)
        yield name.strip(), output.group(1) if output else ""


def gtest_results(output):
    words = {"OK": PASSED, "FAILED": FAILED, "SKIPPED": SKIPPED}
    return {name: words[word] for word, name in re.findall(
        r"^\[ *(OK|FAILED|SKIPPED) *\] (\w+\.\w+)(?: \(|$|,)", output, re.M)}


def unittest_results(output):
    """Of `unittest -v`. What a test prints itself may stand between its name and its result."""
    results = {}
    starts = list(re.finditer(r"^(test_\w+) \([\w.]+\)(?:\n[^\n]*)? \.\.\.", output, re.M))
    for start, following in zip(starts, starts[1:] + [None]):
        text = output[start.end():following.start() if following else len(output)]
        # On the same line, or on a line of its own after what was printed.
        result = re.search(r"(?:\A |\n)(ok|FAIL|ERROR|skipped [^\n]*|expected failure)(?=\n|\Z)",
                           text)
        word = result.group(1) if result else ""
        verdict = PASSED if word == "ok" else SKIPPED if word.startswith("skipped") else FAILED
        # A test has several lines when subtests failed.
        if verdict == PASSED:
            results.setdefault(start.group(1), verdict)
        else:
            results[start.group(1)] = verdict
    for name in re.findall(r"^(?:FAIL|ERROR): (test_\w+) ", output, re.M):
        results[name] = FAILED
    return results


def results_of(log):
    results = {}
    for _, output in sections(log):
        results.update(gtest_results(output))
        results.update(unittest_results(output))
    return results


def judge(rows, tests, results):
    """{row: what is wrong with it, or empty} in the order of `rows`."""
    verdicts = {}
    for row in rows:
        shown_by = sorted(name for name in tests if row in rows_of(name.rpartition(".")[2]))
        wrong = ["%s %s" % (name, results.get(name, NOT_RUN)) for name in shown_by
                 if results.get(name, NOT_RUN) != PASSED]
        verdicts[row] = ", ".join(wrong) if shown_by else "no test names it"
    return verdicts


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def test_files():
    files = {}
    for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
        for name in names:
            # Its own test names rows that are none of ours.
            if name.endswith(("_test.py", "_test.cc")) and name != "rows_test.py":
                path = os.path.join(folder, name)
                files[os.path.relpath(path, ROOT)] = read(path)
    return files


def main(words):
    log_path = words[0] if words else os.path.join(
        ROOT, "build/release/Testing/Temporary/LastTest.log")
    tests = named_tests(test_files())
    results = results_of(read(log_path))
    verdicts = judge(wanted_rows(read(os.path.join(ROOT, "docs/faults.md"))), tests, results)
    green = [row for row, wrong in verdicts.items() if not wrong]
    print("service.md rows: %d of %d green" % (len(green), len(verdicts)))
    for row, wrong in verdicts.items():
        if wrong:
            print("  %s: %s" % (row, wrong))
    return 0 if len(green) == len(verdicts) or not all(name in results for name in tests) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

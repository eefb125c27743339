"""The hot loops of the vector kernels keep their sums in registers: compilers lose that silently.

spills_test.py OBJDUMP OBJECT...: objects of the kernels; those of other names are passed over.
A loop of dot products, or one that decodes floating point numbers on their way into a product, may
touch 64-byte registers on the stack in one instruction of 16, those of OFTEN in one of 12; code
around tile products never.
"""

import os
import re
import subprocess
import sys

# Products of so many tokens that spill more, 6.3 to 7.1 % of their instructions, until that is mended:
# by zero point, bits, kind of scales and minimum of the format, and by tokens and panels.
OFTEN = {
    "Q5_K, 6 tokens": r"GroupTraitsELi0ELi5ELNS0_9ScaleKindE2ELb1E\w*EEEEELi6ELi2EE",
    "Q2_K, 4 tokens": r"GroupTraitsELi0ELi2ELNS0_9ScaleKindE3ELb1E\w*EEEEELi4ELi2EE",
    "Q6_K, 4 tokens": r"GroupTraitsELi32ELi6ELNS0_9ScaleKindE3ELb0E\w*EEEEELi4ELi2EE",
    "NVFP4, 4 tokens": r"GroupTraitsELi16ELi4ELNS0_9ScaleKindE5ELb0E\w*EEEEELi4ELi2EE",
}
SPILL = re.compile(r"zmm.*\(%r[sb]p\)|\(%r[sb]p\).*zmm")


def functions(objdump, path):
    """Yields (name, [(address, instruction)])."""
    listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", path],
                             capture_output=True, text=True, check=True).stdout
    name, body = None, []
    for line in listing.splitlines():
        start = re.match(r"[0-9a-f]+ <(.*)>:", line)
        instruction = re.match(r"\s+([0-9a-f]+):\s+(.*)", line)
        if start:
            if name:
                yield name, body
            name, body = start.group(1), []
        elif instruction:
            body.append((int(instruction.group(1), 16), instruction.group(2)))
    if name:
        yield name, body


def inner_loops(body):
    """The instructions of each loop that holds no other."""
    index = {address: i for i, (address, _) in enumerate(body)}
    loops = []
    for i, (_, text) in enumerate(body):
        jump = re.match(r"j\w+\s+([0-9a-f]+)\b", text)
        first = index.get(int(jump.group(1), 16)) if jump else None
        if first is not None and first <= i:
            loops.append((first, i))
    for first, last in loops:
        if not any((f, l) != (first, last) and first <= f and l <= last for f, l in loops):
            yield [text for _, text in body[first:last + 1]]


def is_hot(kind, name, loop):
    def count(*operations):
        return sum(1 for text in loop if text.startswith(operations))
    if kind == "amx":
        return count("tdpbf16ps") > 0
    decodes = count("vcvtph2ps", "vpermps") > 0 and count("vfmadd") > 0
    return count("vpdpbusd", "vdpbf16ps") > 0 or ("NumberProduct" in name and decodes)


def limit_of(kind, name):
    if kind == "amx":
        return 0
    return 1 / 12 if any(re.search(known, name) for known in OFTEN.values()) else 1 / 16


def spills(instructions):
    return sum(1 for text in instructions if SPILL.search(text))


def main():
    objdump, objects = sys.argv[1], sys.argv[2:]
    checked, failures = 0, []
    for path in objects:
        kind = re.match(r"kernels_(avx512|avx512bf16|amx)\.cc", os.path.basename(path))
        if not kind:
            continue
        for name, body in functions(objdump, path):
            for loop in inner_loops(body):
                if not is_hot(kind.group(1), name, loop):
                    continue
                checked += 1
                limit = limit_of(kind.group(1), name)
                if spills(loop) > limit * len(loop):
                    failures.append(f"{name}: {spills(loop)} of {len(loop)} instructions")
    print(f"{checked} loops checked")
    for failure in failures:
        print("spills in", failure)
    if checked == 0:
        print("no loop of the kernels found")
    return 1 if failures or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Every weight format decodes to the bit: `inspect FILE --tensor NAME --values OUT` on files that
are written here around the bytes of tests/data/gguf-blocks/blocks.

Bits are compared, as fixtures/gguf-blocks/README.md says; in blocks whose scale is not finite a
NaN's sign and payload are free.
"""

import os
import struct
import tempfile
import unittest

import command_line
from command_line import (DATA, MALFORMED, USAGE, must_run, read_safetensors, run)

# Name: type id of ggml (specs/gguf.md).
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q4_K": 12,
         "Q5_K": 13, "Q6_K": 14, "BF16": 30, "Q2_K": 10, "Q3_K": 11, "IQ2_XXS": 16, "IQ2_XS": 17,
         "IQ3_XXS": 18, "IQ1_S": 19, "IQ4_NL": 20, "IQ3_S": 21, "IQ2_S": 22, "IQ4_XS": 23,
         "IQ1_M": 29, "TQ1_0": 34, "TQ2_0": 35, "MXFP4": 39, "NVFP4": 40}
ALIGNMENT = 32


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def write_gguf(path, tensors):
    """[(name, type id, [extents, fastest first], bytes)] and no metadata."""
    records, data = b"", b""
    for name, type_id, extents, content in tensors:
        records += gguf_string(name) + struct.pack("<I", len(extents))
        records += struct.pack("<%dQ" % len(extents), *extents)
        records += struct.pack("<IQ", type_id, len(data))
        data += content + b"\0" * (-len(content) % ALIGNMENT)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0) + records
    with open(path, "wb") as file:
        file.write(header + b"\0" * (-len(header) % ALIGNMENT) + data)


def is_nan(bits):
    return bits & 0x7f800000 == 0x7f800000 and bits & 0x7fffff != 0


def words(data):
    return memoryview(data).cast("B").cast("I")


class BlocksTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.file = os.path.join(temporary.name, "blocks.gguf")
        self.values = os.path.join(temporary.name, "values.safetensors")

    def decode(self, name):
        must_run("inspect", self.file, "--tensor", name, "--values", self.values)
        tensors = read_safetensors(self.values)
        self.assertEqual(list(tensors), [name])
        return tensors[name]

    def for_each_type(self, act):
        for name, type_id in TYPES.items():
            with self.subTest(type=name):
                act(name, type_id, read_safetensors(
                    os.path.join(DATA, "gguf-blocks", "blocks", name + ".safetensors")))

    def test_every_finite_block_decodes_to_the_bit(self):
        def act(name, type_id, fixture):
            rows, columns = fixture["values"][1]
            write_gguf(self.file, [("w", type_id, [columns, rows], bytes(fixture["bytes"][2]))])
            kind, shape, data = self.decode("w")
            self.assertEqual((kind, shape), ("F32", [rows, columns]))
            self.assertTrue(bytes(data) == bytes(fixture["values"][2]), "bits differ")
        self.for_each_type(act)

    def test_blocks_with_scales_that_are_not_finite_decode_alike(self):
        def act(_, type_id, fixture):
            if "nonfinite_values" not in fixture:
                return
            rows, columns = fixture["nonfinite_values"][1]
            write_gguf(self.file,
                       [("w", type_id, [columns, rows], bytes(fixture["nonfinite_bytes"][2]))])
            for ours, wanted in zip(words(self.decode("w")[2]),
                                    words(bytes(fixture["nonfinite_values"][2])), strict=True):
                self.assertTrue(ours == wanted or (is_nan(ours) and is_nan(wanted)),
                                "%08x instead of %08x" % (ours, wanted))
        self.for_each_type(act)

    def test_the_shape_is_the_files_slowest_extent_first(self):
        fixture = read_safetensors(
            os.path.join(DATA, "gguf-blocks", "blocks", "Q4_0.safetensors"))
        content = bytes(fixture["bytes"][2])[:12 * 18]
        values = bytes(fixture["values"][2])[:12 * 32 * 4]
        write_gguf(self.file, [("first", TYPES["F32"], [1], struct.pack("<f", 1.5)),
                               ("cube", TYPES["Q4_0"], [64, 3, 2], content)])
        kind, shape, data = self.decode("cube")
        self.assertEqual((kind, shape), ("F32", [2, 3, 64]))
        self.assertTrue(bytes(data) == values)
        self.assertEqual(bytes(self.decode("first")[2]), struct.pack("<f", 1.5))

    def test_an_unknown_tensor_is_refused_by_name(self):
        write_gguf(self.file, [("w", 0, [1], struct.pack("<f", 1.5))])
        outcome = run("inspect", self.file, "--tensor", "v", "--values", self.values)
        self.assertIn(outcome.code, (USAGE, MALFORMED), str(outcome))
        self.assertEqual(len(outcome.error_lines()), 1, str(outcome))
        self.assertIn("tensor v ", outcome.errors)
        self.assertFalse(os.path.exists(self.values))


if __name__ == "__main__":
    command_line.main()

"""GGUF models written with a seed: shapes that divide unevenly, several formats, three layers and
more, so that every layout can be tried without a downloaded model.

Weights are random bytes with scales that keep logits moderate. Nothing is expected of their
values; they only have to come out the same in every layout.
"""

import random
import struct

ALIGNMENT = 32


def half(value):
    return lambda draw: struct.pack("<e", value * draw.uniform(0.5, 1.5))


def random_bytes(count):
    return lambda draw: draw.randbytes(count)


def byte_between(low, high):
    return lambda draw: bytes([draw.randrange(low, high)])


def split_half(value):
    """IQ1_M: four bits of the half in the highest of each of four words."""
    def write(draw):
        bits, = struct.unpack("<H", half(value)(draw))
        return b"".join(struct.pack("<H", draw.randrange(4096) | (bits >> 4 * i & 15) << 12)
                        for i in range(4))
    return write


# Name: (type id of ggml, values of a block, the parts of its bytes).
FORMATS = {
    "F32": (0, 1, None),
    "Q4_0": (2, 32, [half(0.02), random_bytes(16)]),
    "Q4_1": (3, 32, [half(0.02), half(-0.15), random_bytes(16)]),
    "Q5_0": (6, 32, [half(0.01), random_bytes(20)]),
    "Q5_1": (7, 32, [half(0.01), half(-0.15), random_bytes(20)]),
    "Q8_0": (8, 32, [half(0.002), random_bytes(32)]),
    "Q2_K": (10, 256, [random_bytes(80), half(5e-3), half(7e-3)]),
    "Q3_K": (11, 256, [random_bytes(108), half(1.5e-3)]),
    "Q4_K": (12, 256, [half(2e-4), half(1e-3), random_bytes(140)]),
    "Q5_K": (13, 256, [half(1e-4), half(1e-3), random_bytes(172)]),
    "Q6_K": (14, 256, [random_bytes(208), half(4e-5)]),
    "IQ2_XXS": (16, 256, [half(1e-3), random_bytes(64)]),
    "IQ2_XS": (17, 256, [half(1e-3), random_bytes(72)]),
    "IQ3_XXS": (18, 256, [half(4e-4), random_bytes(96)]),
    "IQ1_S": (19, 256, [half(1e-2), random_bytes(48)]),
    "IQ4_NL": (20, 32, [half(1e-3), random_bytes(16)]),
    "IQ3_S": (21, 256, [half(5e-4), random_bytes(108)]),
    "IQ2_S": (22, 256, [half(1e-3), random_bytes(80)]),
    "IQ4_XS": (23, 256, [half(5e-5), random_bytes(134)]),
    "IQ1_M": (29, 256, [random_bytes(48), split_half(1e-2)]),
    "TQ1_0": (34, 256, [random_bytes(52), half(0.08)]),
    "TQ2_0": (35, 256, [random_bytes(64), half(0.06)]),
    "MXFP4": (39, 32, [byte_between(120, 124), random_bytes(16)]),
    "NVFP4": (40, 64, [byte_between(8, 24)] * 4 + [random_bytes(32)]),
}
UINT32, FLOAT32, STRING = 4, 6, 8


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key, kind, value):
    packed = {UINT32: lambda: struct.pack("<I", value), FLOAT32: lambda: struct.pack("<f", value),
              STRING: lambda: text(value)}[kind]()
    return text(key) + struct.pack("<I", kind) + packed


def random_weights(draw, format_name, count):
    type_id, block_values, parts = FORMATS[format_name]
    if parts is None:
        return type_id, struct.pack("<%df" % count, *[draw.uniform(0.5, 1.5) for _ in range(count)])
    return type_id, b"".join(part(draw) for _ in range(count // block_values) for part in parts)


def write_model(path, seed, layers, model_dim, heads, key_value_heads, head_dim, hidden_dim,
                vocabulary, formats, context=512):
    """`formats`: of embedding, output (None: tied), attention, attention output, up, down."""
    draw = random.Random(seed)
    metadata = [
        pair("general.architecture", STRING, "llama"),
        pair("llama.block_count", UINT32, layers),
        pair("llama.context_length", UINT32, context),
        pair("llama.embedding_length", UINT32, model_dim),
        pair("llama.feed_forward_length", UINT32, hidden_dim),
        pair("llama.attention.head_count", UINT32, heads),
        pair("llama.attention.head_count_kv", UINT32, key_value_heads),
        pair("llama.attention.key_length", UINT32, head_dim),
        pair("llama.attention.value_length", UINT32, head_dim),
        pair("llama.rope.dimension_count", UINT32, head_dim),
        pair("llama.rope.freq_base", FLOAT32, 10000.0),
        pair("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        pair("llama.vocab_size", UINT32, vocabulary),
    ]
    query_dim, key_value_dim = heads * head_dim, key_value_heads * head_dim
    wanted = [("token_embd.weight", formats["embedding"], [model_dim, vocabulary]),
              ("output_norm.weight", "F32", [model_dim])]
    if formats.get("output"):
        wanted.append(("output.weight", formats["output"], [model_dim, vocabulary]))
    for layer in range(layers):
        wanted += [("blk.%d.%s.weight" % (layer, name), format_name, extents)
                   for name, format_name, extents in (
                       ("attn_norm", "F32", [model_dim]),
                       ("attn_q", formats["attention"], [model_dim, query_dim]),
                       ("attn_k", formats["attention"], [model_dim, key_value_dim]),
                       ("attn_v", formats["attention"], [model_dim, key_value_dim]),
                       ("attn_output", formats["attention_output"], [query_dim, model_dim]),
                       ("ffn_norm", "F32", [model_dim]),
                       ("ffn_gate", formats["up"], [model_dim, hidden_dim]),
                       ("ffn_up", formats["up"], [model_dim, hidden_dim]),
                       ("ffn_down", formats["down"], [hidden_dim, model_dim]))]
    records, data, offset = [], [], 0
    for name, format_name, extents in wanted:
        count = extents[0] * (extents[1] if len(extents) > 1 else 1)
        type_id, content = random_weights(draw, format_name, count)
        records.append(text(name) + struct.pack("<I", len(extents)) +
                       struct.pack("<%dQ" % len(extents), *extents) +
                       struct.pack("<IQ", type_id, offset))
        content += b"\0" * (-len(content) % ALIGNMENT)
        offset += len(content)
        data.append(content)
    header = (b"GGUF" + struct.pack("<IQQ", 3, len(wanted), len(metadata)) + b"".join(metadata) +
              b"".join(records))
    with open(path, "wb") as file:
        file.write(header + b"\0" * (-len(header) % ALIGNMENT) + b"".join(data))


def write_uneven_model(path):
    """9 query heads over 3 key/value heads, 10 groups of 32 columns over 8 leaves, tied head."""
    write_model(path, seed=1, layers=4, model_dim=288, heads=9, key_value_heads=3, head_dim=32,
                hidden_dim=320, vocabulary=331,
                formats={"embedding": "Q8_0", "attention": "Q4_1", "attention_output": "Q4_1",
                         "up": "Q4_0", "down": "Q4_1"})


def write_superblock_model(path):
    """Leaves of 96 columns that start inside superblocks of 256; a head of its own."""
    write_model(path, seed=2, layers=3, model_dim=256, heads=8, key_value_heads=2, head_dim=32,
                hidden_dim=768, vocabulary=333,
                formats={"embedding": "Q8_0", "output": "Q6_K", "attention": "Q4_K",
                         "attention_output": "Q5_K", "up": "Q5_K", "down": "Q6_K"})


def write_model_in(path, format_name):
    """Everything but norms in one format: leaves of 32 and 64 columns inside superblocks, tied."""
    write_model(path, seed=3, layers=2, model_dim=256, heads=8, key_value_heads=2, head_dim=32,
                hidden_dim=512, vocabulary=111,
                formats=dict.fromkeys(("embedding", "attention", "attention_output", "up", "down"),
                                      format_name))

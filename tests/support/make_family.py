#!/usr/bin/env python3
"""Makes the tiny checkpoints of tests/data/families that this project made itself:

    python3 -m venv engine && engine/bin/pip install torch transformers safetensors gguf numpy
    engine/bin/python tests/support/make_family.py tests/data/families [FAMILY...]

Random weights in bfloat16 under the published names, in both containers; expected logits and greedy
ids from the class that `transformers` has for the family, with every place that rounds to float32
lifted to float64. The seed is the first one whose greedy margins are all above MARGIN_MIN.
"""

import json
import os
import sys
import zlib

import gguf
import numpy
import safetensors.torch
import torch
import transformers

VOCABULARY = 160
GREEDY = 24
MARGIN_MIN = 0.02
WIDTH = 64
PROMPTS = (1, 17, 45)  # tokens of each sequence

COMMON = {"hidden_size": WIDTH, "vocab_size": VOCABULARY, "max_position_embeddings": 512,
          "bos_token_id": 156, "eos_token_id": 157, "torch_dtype": "bfloat16", "use_cache": True,
          "initializer_range": 0.02, "attention_dropout": 0.0, "tie_word_embeddings": False}

FAMILIES = {
    "arcee": {
        "purpose": "a feed-forward of squared ReLU without gate; yarn",
        "config": {"architectures": ["ArceeForCausalLM"], "model_type": "arcee",
                   "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
                   "head_dim": 16, "intermediate_size": 96, "hidden_act": "relu2",
                   "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "attention_bias": False,
                   "mlp_bias": False,
                   "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0,
                                    "beta_slow": 1.0, "mscale": 1.0,
                                    "original_max_position_embeddings": 128}},
        "is_permuted": True},
    "seed_oss": {
        "purpose": "biases of queries, keys and values, none of the output; head_dim 16 != 64/8",
        "config": {"architectures": ["SeedOssForCausalLM"], "model_type": "seed_oss",
                   "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,
                   "head_dim": 16, "intermediate_size": 96, "hidden_act": "silu",
                   "rms_norm_eps": 1e-6, "rope_theta": 10000000.0, "attention_bias": True,
                   "attention_out_bias": False, "mlp_bias": False, "residual_dropout": 0.1}},
    "olmo3": {
        "purpose": "norms after the sublayers; windows of 12 in layers 0 to 2, whose rope is not "
                   "scaled; yarn in layer 3",
        "gguf": "olmo2",
        "config": {"architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3",
                   "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
                   "intermediate_size": 96, "hidden_act": "silu", "rms_norm_eps": 1e-6,
                   "rope_theta": 500000, "attention_bias": False, "sliding_window": 12,
                   "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
                   "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0,
                                    "beta_slow": 1.0, "attention_factor": 1.2079441541679836,
                                    "original_max_position_embeddings": 64}}},
    "olmoe": {
        "purpose": "queries and keys normed over all heads, 8 experts, top 3, not renormalised",
        "config": {"architectures": ["OlmoeForCausalLM"], "model_type": "olmoe",
                   "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8,
                   "intermediate_size": 32, "hidden_act": "silu", "rms_norm_eps": 1e-5,
                   "rope_theta": 10000.0, "attention_bias": False, "clip_qkv": None,
                   "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": False,
                   "rope_scaling": None}},
    "minimax_m2": {
        "purpose": "sigmoid routing with a correction bias, queries and keys normed over all heads,"
                   " rotation of 8 of 16",
        "gguf": "minimax-m2",
        "config": {"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2",
                   "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,
                   "head_dim": 16, "rotary_dim": 8, "intermediate_size": 32, "hidden_act": "silu",
                   "rms_norm_eps": 1e-6, "rope_theta": 5000000, "num_local_experts": 8,
                   "num_experts_per_tok": 3, "scoring_func": "sigmoid", "use_qk_norm": True,
                   "use_routing_bias": True, "qk_norm_type": "per_layer"}},
}


def lift_to_double():
    """What asks for float32 gets float64."""
    to, softmax = torch.Tensor.to, torch.nn.functional.softmax

    def lifted(value):
        return torch.float64 if value is torch.float32 else value

    torch.Tensor.float = torch.Tensor.double
    torch.Tensor.to = lambda self, *a, **k: to(self, *map(lifted, a),
                                               **{n: lifted(v) for n, v in k.items()})
    torch.nn.functional.softmax = lambda *a, **k: softmax(
        *a, **{n: lifted(v) for n, v in k.items()})
    torch.set_default_dtype(torch.float64)


def head_dim_of(config):
    return config.get("head_dim", WIDTH // config["num_attention_heads"])


def layer_shapes(family, config):
    """Published name within the layer -> (shape, how far its values spread, their middle)."""
    heads, groups, head_dim = (config["num_attention_heads"], config["num_key_value_heads"],
                               head_dim_of(config))
    hidden = config["intermediate_size"]
    shapes = {}

    def matrix(name, rows, columns, spread=1.0):
        shapes[name + ".weight"] = ((rows, columns), spread * columns ** -0.5, 0)

    def vector(name, size, spread=0.2, middle=1.0):
        shapes[name] = ((size,), spread, middle)

    norms = {"olmo3": ("post_attention_layernorm", "post_feedforward_layernorm")}
    for norm in norms.get(family, ("input_layernorm", "post_attention_layernorm")):
        vector(norm + ".weight", WIDTH)
    for name, rows in (("q_proj", heads), ("k_proj", groups), ("v_proj", groups)):
        matrix("self_attn." + name, rows * head_dim, WIDTH, 1.5)
        if config.get("attention_bias"):
            vector("self_attn.%s.bias" % name, rows * head_dim, 0.3, 0)
    matrix("self_attn.o_proj", WIDTH, heads * head_dim)
    if family in ("olmo3", "olmoe", "minimax_m2"):
        vector("self_attn.q_norm.weight", heads * head_dim, 0.3)
        vector("self_attn.k_norm.weight", groups * head_dim, 0.3)
    if family == "minimax_m2":
        matrix("block_sparse_moe.gate", config["num_local_experts"], WIDTH, 2)
        vector("block_sparse_moe.e_score_correction_bias", config["num_local_experts"], 0.1, 0)
        for expert in range(config["num_local_experts"]):
            prefix = "block_sparse_moe.experts.%d." % expert
            matrix(prefix + "w1", hidden, WIDTH)
            matrix(prefix + "w2", WIDTH, hidden, 2)
            matrix(prefix + "w3", hidden, WIDTH)
        return shapes
    if family == "olmoe":
        matrix("mlp.gate", config["num_experts"], WIDTH, 2)
    prefixes = (["mlp.experts.%d." % i for i in range(config["num_experts"])]
                if family == "olmoe" else ["mlp."])
    for prefix in prefixes:
        if family != "arcee":
            matrix(prefix + "gate_proj", hidden, WIDTH)
        matrix(prefix + "up_proj", hidden, WIDTH)
        matrix(prefix + "down_proj", WIDTH, hidden, 2)
    return shapes


def weights_of(family, config, seed):
    shapes = {"model.embed_tokens.weight": ((VOCABULARY, WIDTH), 1.0, 0),
              "model.norm.weight": ((WIDTH,), 0.2, 1),
              "lm_head.weight": ((VOCABULARY, WIDTH), 3 * WIDTH ** -0.5, 0)}
    for layer in range(config["num_hidden_layers"]):
        for name, shape in layer_shapes(family, config).items():
            shapes["model.layers.%d.%s" % (layer, name)] = shape
    weights = {}
    for name, (shape, spread, middle) in shapes.items():
        generator = numpy.random.Generator(numpy.random.PCG64([seed, zlib.crc32(name.encode())]))
        values = middle + spread * generator.standard_normal(shape)
        weights[name] = torch.from_numpy(values).to(dtype=torch.bfloat16).contiguous()
    return weights


def permuted(rows, heads):
    """Rows of a head as GGUF's llama files have them: the two of a rotated pair side by side."""
    return rows.reshape(heads, 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def write_gguf(path, family, made, weights):
    config, architecture = made["config"], made.get("gguf", family)
    identifier = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(identifier, config["num_hidden_layers"])
    writer = gguf.GGUFWriter(path, architecture)
    head_dim = head_dim_of(config)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config.get("rotary_dim", head_dim))
    writer.add_vocab_size(VOCABULARY)
    if "sliding_window" in config:
        writer.add_sliding_window(config["sliding_window"])
        writer.add_sliding_window_pattern(
            [kind == "sliding_attention" for kind in config["layer_types"]])
    if scaling := config.get("rope_scaling"):
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    if experts := config.get("num_experts", config.get("num_local_experts")):
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config["num_experts_per_tok"])
    if family == "minimax_m2":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    stacked = {}
    for name, values in weights.items():
        array = values.to(dtype=torch.float32).numpy()
        if made.get("is_permuted") and name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = "num_attention_heads" if "q_proj" in name else "num_key_value_heads"
            array = permuted(array, config[heads])
        if ".experts." in name:
            head, _, tail = name.partition(".experts.")
            stacked.setdefault("%s.experts.%s" % (head, tail.partition(".")[2]), []).append(array)
        else:
            stacked[name] = array
    for name, array in stacked.items():
        array = numpy.stack(array) if isinstance(array, list) else array
        if name.endswith("e_score_correction_bias"):
            name = name.replace("e_score_correction_bias", "e_score_correction.bias")
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert found is not None, name
        if array.ndim == 1 or "ffn_gate_inp" in found:
            writer.add_tensor(found, array.astype(numpy.float32))
        else:
            writer.add_tensor(found, gguf.quants.quantize(array, gguf.GGMLQuantizationType.BF16),
                              raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0]


def answer(model, ids):
    ids, greedy, margins, tops = list(ids), [], [], []
    for _ in range(GREEDY):
        top = torch.topk(logits_of(model, ids)[-1], 2)
        greedy.append(int(top.indices[0]))
        margins.append(float(top.values[0] - top.values[1]))
        tops.append(float(top.values[0]))
        ids.append(greedy[-1])
    return greedy, margins, tops


def is_good(answers):
    greedy = [answer[0] for answer in answers]
    return (min(min(answer[1]) for answer in answers) >= MARGIN_MIN and
            all(len(set(ids)) >= 6 and COMMON["eos_token_id"] not in ids for ids in greedy))


def make(family, root):
    made = FAMILIES[family]
    config = made["config"] = {**made["config"], **COMMON}
    folder = os.path.join(root, family)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
    with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as file:
        json.dump({key: config[key] for key in ("bos_token_id", "eos_token_id")}, file, indent=2)
    for seed in range(1, 200):
        weights = weights_of(family, config, seed)
        safetensors.torch.save_file(weights, os.path.join(folder, "model.safetensors"),
                                    metadata={"format": "pt"})
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager",
            experts_implementation="eager").eval()
        random = numpy.random.Generator(numpy.random.PCG64([seed, 1]))
        prompts = [random.integers(0, 150, size).tolist() for size in PROMPTS]
        answers = [answer(model, prompt) for prompt in prompts]
        if is_good(answers):
            break
    logits = [logits_of(model, prompt) for prompt in prompts]
    rounded = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, attn_implementation="eager",
            experts_implementation="eager").eval()
    error = max(float((logits_of(rounded, prompt).double() - exact).abs().max())
                for prompt, exact in zip(prompts, logits))
    write_gguf(os.path.join(folder, "model.gguf"), family, made, weights)
    safetensors.torch.save_file(
        {"logits.%d" % i: torch.from_numpy(exact.numpy().astype("float32"))
         for i, exact in enumerate(logits)},
        os.path.join(folder, "expected.safetensors"))
    expected = {"family": family, "purpose": made["purpose"], "class": config["architectures"][0],
                "engine": "transformers %s, torch %s, eager attention, float64 throughout" % (
                    transformers.__version__, torch.__version__),
                "seed": seed, "weights_dtype": "bfloat16",
                "logits_standard_deviation": round(float(torch.cat(logits).std()), 4),
                "minimum_greedy_margin": round(min(min(a[1]) for a in answers), 6),
                "bfloat16_max_error": error,
                "sequences": [{"input_ids": prompt, "greedy_ids": greedy,
                               "greedy_margins": [round(m, 6) for m in margins],
                               "greedy_logits": [round(t, 6) for t in tops]}
                              for prompt, (greedy, margins, tops) in zip(prompts, answers)]}
    if any("experts" in key for key in config):
        expected["routings"] = sum(PROMPTS) * config["num_hidden_layers"]
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(expected, file)
        file.write("\n")
    print(family, "seed", seed, "margin", expected["minimum_greedy_margin"], "spread",
          expected["logits_standard_deviation"], "bf16", error)


if __name__ == "__main__":
    lift_to_double()
    for wanted in sys.argv[2:] or FAMILIES:
        make(wanted, sys.argv[1])

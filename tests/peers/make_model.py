"""Writes a tiny GGUF model whose weights are a Markov chain: it always answers the same, so that a real server can be tested.

`python make_model.py text.gguf` says "Hello from a scripted model."; `python make_model.py tool.gguf tool` calls
`read_file` with path "a.txt", for ever. One token for every character of English, so overflows are cheap to make.
"""

from __future__ import annotations

import sys

import gguf
import numpy as np

TEXT = ["Hello", " from", " a", " scripted", " model."]
TOOL = ["<tool_call>", '\n{"name": "read_file", ', '"arguments": {"path": ', '"a.txt"}}', "\n</tool_call>"]
HEADS, FEED_FORWARD, CONTEXT = 4, 64, 16384
UNKNOWN, BEGIN, END = 0, 1, 2


def vocabulary(parts: list[str]) -> tuple[list[str], list[int]]:
    """Tokens and their types: specials, bytes, printable characters, then the parts of the answer.

    No part may be a single character: the loader refuses a token that is there twice.
    """
    characters = ["\u2581" if c == " " else c for c in map(chr, range(32, 127))]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *characters]
    unknown, control, byte, normal, own = 2, 3, 6, 1, 4
    types = [unknown, control, control, *[byte] * 256, *[normal] * len(characters)]
    return [*tokens, *parts], [*types, *[own] * len(parts)]


def chain(size: int, parts: int) -> dict[int, int]:
    """Which token follows which: whatever was read leads to the first part, each part to the next, the last to the end."""
    first = size - parts
    follows = dict.fromkeys(range(first), first)
    follows |= {first + i: first + i + 1 for i in range(parts - 1)}
    return follows | {size - 1: END}


def write(path: str, parts: list[str]) -> None:
    tokens, types = vocabulary(parts)
    size = len(tokens)
    width = (size + 63) // 64 * 64
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(width)
    file.add_block_count(1)
    file.add_feed_forward_length(FEED_FORWARD)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(width // HEADS)
    file.add_vocab_size(size)
    file.add_file_type(0)
    file.add_tokenizer_model("llama")
    file.add_token_list(tokens)
    file.add_token_scores([0.0] * size)
    file.add_token_types(types)
    file.add_bos_token_id(BEGIN)
    file.add_eos_token_id(END)
    file.add_unk_token_id(UNKNOWN)
    for name, weights in tensors(size, width, chain(size, len(parts))).items():
        file.add_tensor(f"{name}.weight", weights)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def tensors(size: int, width: int, follows: dict[int, int]) -> dict[str, np.ndarray]:
    """One block that does nothing, between an embedding that is the token itself and an output that fires for what follows."""
    output = np.zeros((size, width), np.float32)
    for token, following in follows.items():
        output[following, token] = 10.0
    ones = np.ones(width, np.float32)
    nothing = {name: np.zeros((width, width), np.float32) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    nothing["ffn_gate"] = nothing["ffn_up"] = np.zeros((FEED_FORWARD, width), np.float32)
    nothing["ffn_down"] = np.zeros((width, FEED_FORWARD), np.float32)
    block = {"attn_norm": ones, "ffn_norm": ones, **nothing}
    return {
        "token_embd": np.eye(size, width, dtype=np.float32),
        "output_norm": ones,
        "output": output,
        **{f"blk.0.{name}": weights for name, weights in block.items()},
    }


if __name__ == "__main__":
    write(sys.argv[1], TOOL if sys.argv[2:] else TEXT)

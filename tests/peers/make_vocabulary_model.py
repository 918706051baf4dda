"""Writes a tiny GGUF model that counts as a real family does: a vocabulary as llama.cpp's sources carry it, and weights that
always answer "Hello".

`python make_vocabulary_model.py ggml-vocab-qwen2.gguf qwen2.gguf`. What a server with it counts is what a server with the real
model would count.
"""

from __future__ import annotations

import sys

import gguf
import numpy as np

WIDTH, HEADS, FEED_FORWARD, CONTEXT = 64, 4, 64, 131_072
ANY, HELLO = 0, 1
"""Directions in the embedding: of whatever was read, and of the answer."""


def write(vocabulary: str, path: str) -> None:
    source = gguf.GGUFReader(vocabulary)
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(WIDTH)
    file.add_block_count(1)
    file.add_feed_forward_length(FEED_FORWARD)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // HEADS)
    file.add_file_type(1)
    for name, field in source.fields.items():
        if name.startswith("tokenizer."):
            inner = field.types[1] if len(field.types) > 1 else None
            file.add_key_value(name, field.contents(), field.types[0], inner)
    tokens = source.fields["tokenizer.ggml.tokens"].contents()
    file.add_vocab_size(len(tokens))
    answer = next(i for i, token in enumerate(tokens) if token in {"Hello", "\u2581Hello"})
    end = source.fields["tokenizer.ggml.eos_token_id"].contents()
    for name, weights in tensors(len(tokens), answer, end).items():
        file.add_tensor(f"{name}.weight", weights)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def tensors(size: int, answer: int, end: int) -> dict[str, np.ndarray]:
    """One block that does nothing; whatever was read leads to the answer, and that to the end."""
    embedding, output = np.zeros((size, WIDTH), np.float16), np.zeros((size, WIDTH), np.float16)
    embedding[:, ANY] = 1
    embedding[answer] = 0
    embedding[answer, HELLO] = 1
    output[answer, ANY] = output[end, HELLO] = 10
    ones = np.ones(WIDTH, np.float32)
    nothing = {name: np.zeros((WIDTH, WIDTH), np.float16) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    nothing["ffn_gate"] = nothing["ffn_up"] = np.zeros((FEED_FORWARD, WIDTH), np.float16)
    nothing["ffn_down"] = np.zeros((WIDTH, FEED_FORWARD), np.float16)
    block = {"attn_norm": ones, "ffn_norm": ones, **nothing}
    return {
        "token_embd": embedding,
        "output_norm": ones,
        "output": output,
        **{f"blk.0.{name}": weights for name, weights in block.items()},
    }


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])

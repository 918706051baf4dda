"""What tokenizers make of texts, against the tables ctxchat counts with: the figures of `ctxchat/models/vocabularies.py`.

    python -m benchmarks.vocabularies FOLDER NAME=tokenizer.json …

FOLDER holds texts of all kinds, a few thousand characters a file, whose names begin with the kind (`code-07.txt`); each kind
weighs the same. Prints for each tokenizer how many tokens the samples are that servers are asked for, and for both tables the
rates that fit best, with the error by kind: least squares of the relative error, drawn to "counts the same" where texts say
little.
"""

from __future__ import annotations

import json
import math
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from ctxchat.core.calibration import Mix
from ctxchat.core.tokens import TokenCounter
from ctxchat.models.samples import SAMPLES
from ctxchat.models.tokenizers import count_with
from ctxchat.models.vocabularies import NEWER, OLDER, SAME

Count = Callable[[str], int]

DRAWN = (0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.005, 0.05, 0.05)
"""How strongly each rate is drawn to the usual one."""


def counter(path: Path) -> Count:
    """A tokenizer from its file: Hugging Face's `tokenizer.json`, or Mistral's `tekken.json`."""
    held = json.loads(path.read_text("utf-8"))
    if "config" in held and "vocab" in held:
        import tiktoken

        config = held["config"]
        words = held["vocab"][: config["default_vocab_size"] - config["default_num_special_tokens"]]
        ranks = {b64decode(word["token_bytes"]): word["rank"] for word in words}
        table = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
        return lambda text: len(table.encode_ordinary(text))
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def features(mix: Mix) -> tuple[int, ...]:
    """The kinds of text, in the order of `vocabularies.Rates`."""
    return (mix.words, mix.wide, mix.digits, mix.marks, mix.han, mix.kana, mix.accents, mix.capitals, mix.indents)


def fitted(rows: Sequence[Sequence[float]], real: Sequence[int], weights: Sequence[float]) -> list[float]:
    """Rates r that make Σ w (x·r / t - 1)² + Σ drawn (r - usual)² least, by Gaussian elimination."""
    size = len(SAME)
    left = [[DRAWN[i] * (i == j) for j in range(size)] for i in range(size)]
    right = [drawn * usual for drawn, usual in zip(DRAWN, SAME, strict=True)]
    for row, tokens, weight in zip(rows, real, weights, strict=True):
        for i in range(size):
            right[i] += weight * row[i] / tokens
            for j in range(size):
                left[i][j] += weight * row[i] * row[j] / tokens**2
    for i in range(size):
        for k in range(i + 1, size):
            share = left[k][i] / left[i][i]
            left[k] = [a - share * b for a, b in zip(left[k], left[i], strict=True)]
            right[k] -= share * right[i]
    rates = [0.0] * size
    for i in reversed(range(size)):
        rates[i] = (right[i] - sum(left[i][j] * rates[j] for j in range(i + 1, size))) / left[i][i]
    return rates


def main(folder: str, *tokenizers: str) -> None:
    texts = [(path.name.split("-")[0], path.read_text("utf-8")) for path in sorted(Path(folder).glob("*.txt"))]
    sizes = Counter(kind for kind, _ in texts)
    weights = [40 / sizes[kind] for kind, _ in texts]
    mixes = {
        table: [features(TokenCounter(count_with(table)).text_mix(text)) for _, text in texts]
        for table in (OLDER, NEWER)
    }
    for named in tokenizers:
        name, _, path = named.partition("=")
        count = counter(Path(path))
        print(name, tuple(map(count, SAMPLES)))
        real = [count(text) for _, text in texts]
        for table, rows in mixes.items():
            rates = fitted(rows, real, weights)
            off: dict[str, list[float]] = {}
            for (kind, _), row, tokens in zip(texts, rows, real, strict=True):
                off.setdefault(kind, []).append(sum(map(float.__mul__, map(float, row), rates)) / tokens - 1)
            by_kind = {kind: math.sqrt(sum(e * e for e in errors) / len(errors)) for kind, errors in off.items()}
            shown = "  ".join(f"{kind} {error:.1%}" for kind, error in by_kind.items())
            print(f"  {table:<12} ({', '.join(f'{rate + 0:.2f}' for rate in rates)})  {shown}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("Needs a folder of texts: see the head of this file.")
    else:
        main(*sys.argv[1:])

"""Counting tokens by a model's family with tiktoken, offline: its tables lie inside litellm's wheel.

Never raises, never stalls, never asks the network; without tables it is the core's rough count, which errs upward.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

from ctxchat.core.tokens import Count, rough_count
from ctxchat.models.catalogue import package_folder
from ctxchat.models.vocabularies import table_of

SLICE = 16_384
"""Characters encoded at once: long unbroken runs would stall the encoder, or make it panic."""

_TABLES = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""The file names tiktoken gives its tables in a cache folder."""

_LOADING = threading.Lock()


def counter(model: str) -> Count:
    """A counter for a model. The table is read with the first count, in about a fifth of a second: see `warm`.

    Reading it gives way to other threads; building the encoder does not, for some 50 ms (cl100k) or 115 ms (o200k), once a
    program. It cannot be built in pieces, and a process to count in would cost 60 MB and a round trip with every key.
    """
    return count_with(table_of(model))


def count_with(table: str) -> Count:
    """As `counter`, with a table by its name."""
    return functools.partial(_count, table)


def warm(model: str) -> None:
    """Read the table of a model's family. Blocks; call it off the event loop."""
    _encoding(table_of(model))


def _count(name: str, text: str) -> int:
    encoding = _encoding(name)
    if encoding is None:
        return rough_count(text)
    return sum(_slice(encoding, text[i : i + SLICE]) for i in range(0, len(text), SLICE))


def _slice(encoding: Any, text: str) -> int:
    try:
        return len(encoding.encode_ordinary(text))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic in the encoder's Rust is no Exception
        return rough_count(text)


def _encoding(name: str) -> Any:
    with _LOADING:
        return _load(name)


@functools.cache
def _load(name: str) -> Any:
    package = package_folder()
    folder = package / "litellm_core_utils" / "tokenizers" if package else None
    if folder is None or not (folder / _TABLES[name]).is_file():
        return None  # asking tiktoken now would make it download, without a time limit
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        import tiktoken

        return tiktoken.get_encoding(name)
    except Exception:  # a damaged table: estimates are better than no start
        return None
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before

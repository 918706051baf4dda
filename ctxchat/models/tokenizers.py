"""Counts tokens offline, with the tokenizer that is nearest to a model's: with tiktoken's tables, which are part of litellm's
package. Where a folder is given, the tables are also kept there as files (`token_table`) that need much less time and memory.

Never raises, never takes long, never uses the network. Without the tables it counts by the core's rough estimate, which is rather
too high.
"""

from __future__ import annotations

import functools
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxchat.core.tokens import Count, rough_count
from ctxchat.models import token_table
from ctxchat.models.catalogue import package_folder
from ctxchat.models.token_table import TokenTable
from ctxchat.models.vocabularies import table_of

ENCODED_CHUNK_CHARS = 16_384
"""The most characters encoded at once: a longer text without a break would stall tiktoken's encoder, or make it panic."""

_TABLES = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""The names of the tables, with the names of their files in tiktoken's cache folder."""

_LOADING = threading.Lock()

_FOLDER: list[Path] = []
"""The folder for the files of tables, or nothing."""


def keep_files(folder: Path) -> None:
    """Keep the tables as files in this folder from now on, for all counters of this process."""
    _FOLDER[:] = [folder]
    _file.cache_clear()


def counter(model: str) -> Count:
    """The function that counts a text for a model. Where the table has no file yet, the first count loads it, in some tenths of a
    second, and writes the file."""
    return count_with(table_of(model))


def count_with(table: str) -> Count:
    """Like `counter`, for a table by its name."""
    return functools.partial(_count, table)


def _count(name: str, text: str) -> int:
    """The tokens of a text with the table of this name."""
    with _LOADING:
        file = _file(name)
    chunks = (text[i : i + ENCODED_CHUNK_CHARS] for i in range(0, len(text), ENCODED_CHUNK_CHARS))
    return sum(_count_chunk(name, file, chunk) for chunk in chunks)


@functools.cache
def _file(name: str) -> TokenTable | None:
    """A table from its file, which is written first where it is missing or damaged; None where there is no folder, or no
    table."""
    if not _FOLDER:
        return None
    file = _FOLDER[0] / f"{name}.table"
    with suppress(Exception):  # not there, damaged
        return TokenTable(file)
    if (encoding := _load(name)) is None:
        return None
    with suppress(Exception):  # a full disk, say, or another tiktoken
        token_table.write_table(file, encoding._pat_str, encoding._mergeable_ranks)
        table = TokenTable(file)
        _load.cache_clear()  # frees its memory; it is loaded again for a text that the file cannot count
        return table
    return None


def _count_chunk(name: str, file: TokenTable | None, text: str) -> int:
    """The tokens of a short text: by the table's file, else by tiktoken, else by the rough estimate."""
    if file and (counted := file.count(text)) is not None:
        return counted
    encoding = _encoding(name)
    try:
        return len(encoding.encode_ordinary(text)) if encoding else rough_count(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic in the encoder's Rust is no Exception
        return rough_count(text)


def _encoding(name: str) -> Any:
    with _LOADING:
        return _load(name)


@functools.cache
def _load(name: str) -> Any:
    """tiktoken's encoding of this name; None where its table is not installed or is damaged."""
    package = package_folder()
    folder = package / "litellm_core_utils" / "tokenizers" if package else None
    if folder is None or not (folder / _TABLES[name]).is_file():
        return None  # tiktoken would now download it, without a time limit
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        import tiktoken

        return tiktoken.get_encoding(name)
    except Exception:  # a damaged table: the rough estimate is better than an error at the start
        return None
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before

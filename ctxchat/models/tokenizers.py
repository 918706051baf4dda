"""Counting tokens by a model's family, offline: with tiktoken, whose tables lie inside litellm's wheel, and where a folder is
named for it with files made of them (`token_table`), which need neither its time nor its memory.

Never raises, never stalls, never asks the network; without tables it is the core's rough count, which errs upward.
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
"""Characters encoded at once: long unbroken runs would stall the encoder, or make it panic."""

_TABLES = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""The file names tiktoken gives its tables in a cache folder."""

_LOADING = threading.Lock()

_FOLDER: list[Path] = []
"""Where the files are, if anywhere."""


def keep_files(folder: Path) -> None:
    """From now on tables are kept there as files, for all counters of this process."""
    _FOLDER[:] = [folder]
    _file.cache_clear()


def counter(model: str) -> Count:
    """A counter for a model. Where there is no file yet the first count reads the table, in some tenths of a second, and makes
    one."""
    return count_with(table_of(model))


def count_with(table: str) -> Count:
    """As `counter`, with a table by its name."""
    return functools.partial(_count, table)


def _count(name: str, text: str) -> int:
    with _LOADING:
        file = _file(name)
    return sum(_slice(name, file, text[i : i + ENCODED_CHUNK_CHARS]) for i in range(0, len(text), ENCODED_CHUNK_CHARS))


@functools.cache
def _file(name: str) -> TokenTable | None:
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
        _load.cache_clear()  # it is read again for a text that wants it
        return table
    return None


def _slice(name: str, file: TokenTable | None, text: str) -> int:
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

"""A table as a file counts what tiktoken counts, needs nothing of it, and is made anew where it cannot be used."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.models.token_table import MAX_RUN_BYTES, TokenTable
from ctxchat.models.tokenizers import ENCODED_CHUNK_CHARS, counter
from ctxchat.models.vocabularies import NEWER, OLDER

MODELS = {OLDER: "gpt-4", NEWER: "gpt-4o"}

COUNT = """
import json, sys
from pathlib import Path
from ctxchat.models.tokenizers import counter, keep_files
keep_files(Path(sys.argv[1]))
texts = json.loads(sys.argv[2])
print(json.dumps([[counter(model)(text) for text in texts] for model in ("gpt-4", "gpt-4o")]))
print("tiktoken" in sys.modules)
"""


def counted(folder: Path, *texts: str) -> tuple[list[list[int]], bool]:
    """The counts in a program of its own, by each table, and whether tiktoken was needed."""
    command = [sys.executable, "-c", COUNT, str(folder), json.dumps(texts)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return json.loads(said[0]), said[1] == "True"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TokenTable]:
    folder = tmp_path_factory.mktemp("tables")
    counted(folder, "")
    return {name: TokenTable(folder / f"{name}.table") for name in MODELS}


@pytest.fixture(scope="module")
def by_tiktoken() -> dict[str, Callable[[str], int]]:
    return {name: counter(model) for name, model in MODELS.items()}


RUN = st.text(st.sampled_from("吾輩は猫であるщыabcXYZé"), min_size=20, max_size=200)
SOME = st.text(st.sampled_from("aAbe 1'.\n\r\t,漢のは👩‍é\u0301ſK\x1c\x85\u2028<|>/_-{}"), max_size=40)


@given(
    st.one_of(
        SOME, RUN, st.text(max_size=40), st.lists(st.sampled_from(["'LL", "'s", "  ", "\n\n", "the ", "getX", "12345"]))
    )
)
@settings(max_examples=300)
def test_it_counts_what_tiktoken_counts(
    tables: dict[str, TokenTable], by_tiktoken: dict[str, Callable[[str], int]], text: str | list[str]
) -> None:
    text = "".join(text)
    for name, table in tables.items():
        assert table.count(text) == by_tiktoken[name](text)


def test_of_files_as_well(tables: dict[str, TokenTable], by_tiktoken: dict[str, Callable[[str], int]]) -> None:
    root = Path(__file__).parents[2]
    for file in ("README.md", "uv.lock", "ctxchat/tui/app.py", "ctxchat/models/offline/words.py"):
        text = (root / file).read_text()[:ENCODED_CHUNK_CHARS]
        assert {name: table.count(text) for name, table in tables.items()} == {
            name: count(text) for name, count in by_tiktoken.items()
        }


def test_what_cannot_be_counted_here_is_left(tables: dict[str, TokenTable]) -> None:
    assert tables[OLDER].count("q" * (MAX_RUN_BYTES + 1)) is None
    assert tables[OLDER].count("\ud800") is None


def test_made_once_it_needs_no_tiktoken_and_damaged_it_is_made_again(tmp_path: Path) -> None:
    first, second = counted(tmp_path, "Hello, world!"), counted(tmp_path, "Hello, world!")
    assert first == ([[4], [4]], True) and second == ([[4], [4]], False)
    file = tmp_path / f"{OLDER}.table"
    whole = file.read_bytes()
    changed = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (0, 4, 12, 14, 16, 5000)]
    for damaged in (b"", whole[:1000], whole[:-1], *changed):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            TokenTable(file)
    assert counted(tmp_path, "Hello, world!") == first
    assert file.read_bytes() == whole
    long = "x" * 20_000
    assert counted(tmp_path, long) == (counted(tmp_path / "none", long)[0], True)
    assert counted(tmp_path, "吾輩は猫である" * 40, "щ" * 60, "word " * 20_000)[1] is False


def test_where_none_can_be_kept_the_counts_are_the_same_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / f"{OLDER}.table").mkdir()
    (tmp_path / "a file").touch()
    assert counted(tmp_path, "Hello, world!") == counted(tmp_path / "a file", "Hello, world!") == ([[4], [4]], True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a file", f"{OLDER}.table", f"{NEWER}.table"]

"""A file that is not valid TOML: `config check` names each mistake in it, and nothing else."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ctxchat.config import effective
from ctxchat.config.toml_recovery import MAX_MISTAKES, recover
from tests.examples import examples

from .conftest import Home

FINE = (
    "k{n} = 1",
    'k{n}.x."with dot" = "a # b"  # [no',
    'k{n} = [ # [1]\n  "x", # one\n  {{ y = 2, z.w = "3" }},\n  [1, 2],\n  ["x"],\n]',
    'k{n} = """\nsome = words\n[no header\n"quoted\n"""',
    "k{n} = '''\nx = 1\n'''",
    "",
    "# keep = [",
    "[t{n}]",
    "[t{n}.sub]",
    "[[many]]",
    "[many.sub{n}]",
)

BROKEN = (
    "b{n} =",
    "b{n} = yes",
    "b{n}: 1",
    'b{n} = "open',
    "b{n} = [1 2]",
    "b{n} = 1 2",
    'b{n} = "\\q"',
    "= {n}",
    "[u{n}",
    "[[many]",
    "[many.sub",
    "[u{n} x]",
    "# \1",
    "[]",
    "p{n} = 1\nnot a statement",
    "p{n} = 1\np{n} = 2",
)
"""The last line of each is the broken one. None with a bracket that is never closed: what is below may be a part of that."""

BLOCKS = st.lists(
    st.tuples(st.just(False), st.sampled_from(FINE)) | st.tuples(st.just(True), st.sampled_from(BROKEN)), max_size=16
)


@examples(150, 1000)
@given(blocks=BLOCKS)
def test_each_broken_line_is_named_and_no_other(blocks: list[tuple[bool, str]]) -> None:
    lines: list[str] = []
    wrong: set[int] = set()
    for n, (broken, block) in enumerate(blocks):
        lines += block.format(n=n).split("\n")
        if broken:
            wrong.add(len(lines))
            lines.append("")  # lines that begin nothing are one mistake as far as the next empty one
    assume(_is_toml("\n".join(block.format(n=n) for n, (broken, block) in enumerate(blocks) if not broken)))
    text = "\n".join(lines)
    assert {p.line for p in recover(text, "f").problems} == wrong, text


@given(text=st.text(alphabet="[]{}=\"\n.#'a1,-\\ ", max_size=80))
def test_any_text_has_a_mistake_or_a_tree(text: str) -> None:
    found = recover(text, "f")
    assert bool(found.problems) != _is_toml(text)
    assert all(1 <= p.line <= text.count("\n") + 1 for p in found.problems)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('a = """open\nb = 1\nc =\n', {1: "never closed", 3: "Invalid value"}),
        ('a = [\n  "x",\nb = 1\n[c\n', {1: "never closed", 4: "Expected ']'"}),
        ('a = [\n  "x",\n  oops,\n]\nb = 1\n', {3: "Invalid value"}),
        ('a = """\nb = 1\n\\q\n"""\nc = 1', {3: "Unescaped"}),
        ('a = """x\nb = 1\nc = """y\nd =', {1: "never closed", 3: "never closed", 4: "Invalid value"}),
        ("a = 1\r\nb =\r\n", {2: "Invalid value"}),
        ("a = " + "9" * 5000 + "\nb =\nc = " + "[" * 3000, {1: "measure", 2: "Invalid value", 3: "measure"}),
        ("a" + ".a" * 600 + " = 1\nb =", {1: "too many dots", 2: "Invalid value"}),
        ("[a]\nx = 1\n[b\nx = 2\n[a]\nx = 1\n", {3: "Expected", 5: "twice"}),
    ],
)
def test_what_is_said_of_which_line(text: str, told: dict[int, str]) -> None:
    found = {p.line: p.text for p in recover(text, "f").problems}
    assert list(found) == list(told), found
    assert all(word in found[line] for line, word in told.items()), found


@pytest.mark.parametrize("line", ["a =\n", 'a = """\n', "a = [\n", "oops\n\n", "[a\n"])
def test_a_file_of_mistakes_ends_soon(line: str) -> None:
    found = recover(line * (200_000 // len(line)), "f").problems
    assert len(found) <= MAX_MISTAKES + 1


def test_settings_name_both_kinds_of_mistake(home: Home, fresh_home: Callable[[], Home]) -> None:
    home.file.write_text(
        "[context]\nkeep_recnt = 3\nkeep_recent =\n[[hooks]\nevent = 3\n[hooks.x]\n[shell\nfoo = 1\n[notes]\nx = 1\n"
    )
    loaded = effective.load_settings(None, config=home.file, environ={})
    assert [p.line for p in loaded.problems] == [2, 3, 4, 7, 9]
    assert all(p.allowed or p.nearest for p in loaded.problems if p.line != 9), loaded.problems


def _is_toml(text: str) -> bool:
    try:
        json.dumps(tomllib.loads(text), default=str)
    except ValueError:
        return False
    return True

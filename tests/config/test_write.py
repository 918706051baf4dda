"""One option written: only its line changes, and what cannot be written is refused with the file untouched."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from difflib import SequenceMatcher

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ctxchat.config.toml_positions import parse_key
from ctxchat.config.trees import get, nested, overlay, without
from ctxchat.config.write import set_value, unset_value
from ctxchat.core.errors import UsageError
from tests.examples import examples

from .conftest import Home

BLOCKS = [
    "# my settings, do not lose this\n\n",
    'model = "a/b" # the good one\n',
    "theme='light'   # quotes kept elsewhere\n",
    "context.min_messages = 5 # dotted\n",
    "\n[context] # header comment\n# before\nkeep_recent =   7 # seven\ntarget = 0.4\n\n# after\n",
    "\n[context.reactive]\nmicro_trigger = 0.8\n",
    "\n[permissions]\nrules = [\n  'shell: ls', # list\n  # inner\n  'shell: make',\n]\nsandbox=true\n",
    "\n[interface]\n  bell = true # indented\n",
    "\n  [models.'x/y'] # quoted\n  window = 100\n  extra = { a = 1, b = [1, 2] }\n",
    '\n[[hooks]]\nevent = "error"\naction = "notify"\ntext = """\nkeep_recent = 3\n"""\n',
    "\n[tools]\n",
    '\nmcp = { files = { command = "x" } }\n',
]
EDITS = [
    ("model", "c/d"),
    ("theme", "dark"),
    ("context.keep_recent", 9),
    ("context.target", 0.3),
    ("context.min_messages", 6),
    ("context.reactive.micro_trigger", 0.7),
    ("context.reactive.max_per_turn", 1),
    ("context.sections.tools.budget", 500),
    ("context.prepare.enabled", False),
    ("permissions.rules", ["shell: git *", "read: *"]),
    ("permissions.sandbox", False),
    ("interface.bell", False),
    ("interface.mouse", False),
    ("keys.help", ["f1", "ctrl+r"]),
    ("tools.shell_timeout", 5),
    ('models."x/y".window', 200),
    ('models."x/y".fallback', "a/b"),
    ('models."new/one".api_base', "http://localhost:1"),
    ("mcp.files.enabled", False),
]


@st.composite
def files(draw: st.DrawFn) -> str:
    blocks = [b for b in BLOCKS if draw(st.booleans())]
    dotted = "context.min_messages" in "".join(blocks)
    if dotted:
        blocks = [b for b in blocks if "[context" not in b]
    inline = [b for b in blocks if b.startswith("\nmcp")]
    root = [b for b in blocks if not b.lstrip().startswith("[") and b not in inline]
    text = "".join([*root, *inline, *(b for b in blocks if b.lstrip().startswith("["))])
    text = text if draw(st.booleans()) else text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    a, b = before.splitlines(), after.splitlines()
    gone, come = [], []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += a[i1:i2]
            come += b[j1:j2]
    return gone, come


@examples(62, 250)
@given(text=files(), edit=st.sampled_from(EDITS))
def test_only_the_edited_line_changes(fresh_home: Callable[[], Home], text: str, edit: tuple[str, object]) -> None:
    home, (key, value) = fresh_home(), edit
    assume("mcp" in text or "mcp" not in key)  # half a server is refused, see below
    home.file.write_bytes(text.encode())
    before = tomllib.loads(text)
    set_value(home.file, key, value)
    after = home.file.read_bytes().decode()
    path = parse_key(key)
    assert get(tomllib.loads(after), path) == value
    assert tomllib.loads(after) == overlay(without(before, path), nested(path, value))
    gone, come = changed_lines(text, after)
    old = get(before, path)
    if isinstance(old, list) and old != value:
        assert len(gone) == 5 and len(come) == 1  # the list was five lines
    else:
        assert len(gone) <= 1
        assert len([line for line in come if line.strip()]) <= (1 if gone or old is not None else 2)
        if gone and "#" in gone[0]:
            assert come[0].endswith(gone[0][gone[0].index("#") :])
    assert after.count("\r\n") == (after.count("\n") if "\r\n" in text else 0)
    assert home.load().problems == ()
    unset_value(home.file, key)
    assert get(tomllib.loads(home.file.read_bytes().decode()), path) is None


def test_a_new_file_is_private_and_holds_the_value(home: Home) -> None:
    file = home.config / "deeper" / "config.toml"
    set_value(file, "context.keep_recent", 5)
    assert file.read_text() == "[context]\nkeep_recent = 5\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in file.parent.iterdir()] == ["config.toml"]


def test_links_permissions_and_byte_order_mark_stay(home: Home) -> None:
    real = home.config / "real.toml"
    real.write_bytes(b"\xef\xbb\xbf# hi\ntheme = 'dark'\n")
    real.chmod(0o640)
    home.file.symlink_to(real)
    set_value(home.file, "theme", "light")
    assert home.file.is_symlink() and real.read_bytes() == b'\xef\xbb\xbf# hi\ntheme = "light"\n'
    assert real.stat().st_mode & 0o777 == 0o640


def test_the_same_value_writes_nothing(home: Home) -> None:
    home.file.write_text("theme = 'dark'\n")
    stamp = home.file.stat().st_mtime_ns
    set_value(home.file, "theme", "dark")
    unset_value(home.file, "model")
    assert home.file.stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("context.keep_recnt", 3, "did you mean keep_recent"),
        ("context.keep_recent", 0, "must be a whole number from 1 to 10,000"),
        ("context.keep_recent", "3", "must be a whole number"),
        ("context.target", 0.9, "is not below compression_trigger"),
        ("context.reactive.full_trigger", 0.5, "is not below reactive.full_trigger"),
        ("not a key", 1, "is no key"),
        ("mcp.x.args", ["a"], "has neither a command nor a url"),
        (f"mcp.{'x' * 31}.url", "http://127.0.0.1:9", "is no name for a server"),
        ("context", {"keep_recent": 0}, "must be a whole number"),
        ("model", "a/\ud800", "half a character"),
    ],
)
def test_what_is_not_allowed_leaves_the_file_alone(home: Home, key: str, value: object, told: str) -> None:
    text = "[context.reactive]\nmicro_trigger = 0.6 # mine\n"
    home.file.write_text(text)
    with pytest.raises(UsageError, match=told):
        set_value(home.file, key, value)
    assert home.file.read_text() == text


def test_a_broken_file_is_not_edited(home: Home) -> None:
    home.file.write_text("model = \n")
    with pytest.raises(UsageError, match="by hand"):
        set_value(home.file, "theme", "light")
    assert home.file.read_text() == "model = \n"


def test_other_mistakes_in_the_file_do_not_stop_an_edit(home: Home) -> None:
    home.file.write_text("modl = 'x'\ntheme = 'dark'\n")
    set_value(home.file, "theme", "light")
    assert home.file.read_text() == "modl = 'x'\ntheme = \"light\"\n"

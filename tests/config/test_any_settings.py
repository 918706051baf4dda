"""Settings files of any content: read, or named with what is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.config.consistency import agent_context
from ctxchat.config.schema import DEFAULTS
from tests.examples import examples

from .conftest import Home


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", ""),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"# one\nmodel = \xe9\n", "config.toml:2: is not UTF-8 text"),
        (b"model = 'a\n[x']", "config.toml:1: is not valid TOML"),
        (b"[context]\nkeep_recent =\n", "config.toml:2: is not valid TOML"),
        (b"a = " + b"9" * 5000, "beyond all measure"),
        (b"a = " + b"[" * 3000, "beyond all measure"),
        (b"a." * 20_000 + b"a = 1", "too many dots"),
        (b"# x\n" * 100_000, "is too large"),
        (b"model = 'x'\nmodel = 'y'\n", "config.toml:2: is not valid TOML"),
        (b"\xef\xbb\xbfmodel = 'x'\n", ""),
        (b"model = 'x\x1b[2J'", "is not valid TOML"),
    ],
)
def test_any_content_is_read_or_named(home: Home, content: bytes, told: str) -> None:
    home.file.write_bytes(content)
    notices = home.load().notices
    assert (told in notices[0]) if told else not notices
    assert all(line.isprintable() for line in notices)


def test_what_is_no_readable_file_is_named(home: Home) -> None:
    home.file.mkdir()
    assert "is a folder" in home.load().notices[0]
    home.file.rmdir()
    os.mkfifo(home.file)
    assert "is not a file" in home.load().notices[0]
    home.file.unlink()
    home.file.symlink_to(home.file)
    assert "cannot be read" in home.load().notices[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(home: Home) -> None:
    home.file.write_text("model = 'x'")
    home.file.chmod(0)
    assert "check its permissions" in home.load().notices[0]


@pytest.mark.parametrize("mark", ["compression_trigger = 0.1", "reactive.full_trigger = 0.1"])
@pytest.mark.parametrize("table", ["[context]", "[agents.x.context]"])
def test_the_lowest_mark_takes_along_those_below_it(home: Home, table: str, mark: str) -> None:
    home.file.write_text(f"{table}\n{mark}\n")
    loaded = home.load()
    assert not loaded.notices
    context = agent_context(loaded.settings, "x") if "agents" in table else loaded.settings.context
    assert context.target < context.compression_trigger and context.prepare.soft_mark < context.compression_trigger
    assert context.reactive.micro_trigger < context.reactive.full_trigger


WORDS = st.sampled_from(
    ["model", "context", "keep_recent", "hooks", "keys", "mcp", "agents", "x", "event", "when", "not"]
)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["error", "run", "f1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.binary(max_size=200) | st.text(alphabet="[]{}=\"\n.#'a1,-\\x", max_size=80).map(str.encode))
def test_no_bytes_raise(fresh_home: Callable[[], Home], data: bytes) -> None:
    home = fresh_home()
    home.file.write_bytes(data)
    home.project.write_bytes(data)
    loaded = home.load()
    assert loaded.problems or loaded.settings == DEFAULTS or loaded.origins or not data.strip(b"\n") or b"#" in data


@examples(37, 150)
@given(tree=st.dictionaries(WORDS, VALUES, max_size=5))
def test_any_tree_leads_to_settings_or_problems_with_lines(
    fresh_home: Callable[[], Home], tree: dict[str, object]
) -> None:
    home = fresh_home()
    text = to_toml(tree)
    home.file.write_text(text, encoding="utf-8")
    loaded = home.load()
    assert all(p.line > 0 for p in loaded.problems), [p.text for p in loaded.problems]
    if not loaded.problems:
        assert set(loaded.origins) or not text.strip() or "{" in text or "[]" in text


def to_toml(tree: dict[str, object]) -> str:
    from ctxchat.config.toml_positions import literal

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if v is not None}
        if isinstance(value, list):
            return [plain(v) for v in value if v is not None]
        return value

    whole = plain(tree)
    assert isinstance(whole, dict)
    return "".join(f"{key} = {literal(value)}\n" for key, value in whole.items())

"""The chat opens whatever is wrong with the settings, and says what, where, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxchat.config.effective import load_settings
from tests.cli.conftest import Home
from tests.e2e.conftest import READY, Open


def unreadable(file: Path) -> None:
    file.write_text("model = 'x'")
    if os.geteuid():
        file.chmod(0)
    else:  # root may read everything but a link to itself
        file.unlink()
        file.symlink_to(file)


def text(content: str) -> Callable[[Path], None]:
    return lambda file: file.write_bytes(content.encode()) and None


def theme(content: str) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        folder = file.parent / "themes"
        folder.mkdir()
        (folder / "mine.toml").write_text(content)
        file.write_text('theme = "mine"\n')

    return write


WRONG: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "unreadable": (unreadable, ("config.toml: cannot be read", "check its permissions")),
    "empty": (text(""), ()),
    "not UTF-8": (lambda f: f.write_bytes(b"# one\nmodel = \xe9\n") and None, ("config.toml:2:", "save it as UTF-8")),
    "syntax error": (text("[context]\nkeep_recent =\n"), ("config.toml:2: is not valid TOML",)),
    "unknown key": (
        text("[context]\nkeep_recnt = 3\n"),
        ("config.toml:2: context.keep_recnt", "did you mean keep_recent?"),
    ),
    "trigger above window": (
        text("[context]\nmax_tokens = 2000\noutput_reserved = 3000\n"),
        ("config.toml:3: context.output_reserved: 3000 does not fit into max_tokens (2000)",),
    ),
    "theme lacks colours": (
        theme('background = "#111"\n'),
        ("mine.toml: foreground: is missing", "mine.toml: primary: is missing", "there is no theme 'mine'"),
    ),
    "theme nobody has": (
        text('theme = "gruvbx"\n'),
        ("config.toml:1: theme: there is no theme 'gruvbx'", "did you mean gruvbox?"),
    ),
    "key conflict": (
        text('[keys]\nsearch = "f3"\nhelp = "ctrl+a"\n'),
        ("keys.search: f3 was the key of archive", "keys.help: ctrl+a is taken by the message editor"),
    ),
    "agent nobody has": (text('agent = "reviewer"\n'), ("config.toml:1: agent:",)),
}

QUICK = {"unreadable", "syntax error", "theme lacks colours", "key conflict"}
"""One of each way on which it is told: a file that cannot be read, settings, themes, keys. The others take the same."""

LIKEWISE: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "huge": (text("# x\n" * 100_000), ("config.toml: is too large (400,000 bytes)", "at most")),
    "wrong type": (
        text("context.keep_recent = 'many'\n"),
        ("config.toml:1:", "must be a whole number from 1 to 10,000"),
    ),
    "keep_recent 0": (text("context.keep_recent = 0\n"), ("is 0, must be a whole number from 1 to 10,000",)),
    "micro above full": (
        text("[context.reactive]\nmicro_trigger = 0.95\n"),
        ("config.toml:2: context.reactive.micro_trigger: 0.95 is not below reactive.full_trigger (0.92)",),
    ),
    "target above trigger": (
        text("[context]\ntarget = 0.8\ncompression_trigger = 0.6\n"),
        ("context.target: 0.8 is not below compression_trigger (0.6)",),
    ),
    "hook without a command": (text('[[hooks]]\nevent = "error"\naction = "run"\n'), ("hooks[1].command: is missing",)),
}
"""Told on the same way as a syntax error or an unknown key."""


@pytest.mark.parametrize("name", LIKEWISE)
def test_each_problem_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    write, said = LIKEWISE[name]
    file = tmp_path / "config.toml"
    write(file)
    told = "\n".join(problem.text for problem in load_settings(config=file, environ={}, known=lambda _: ()).problems)
    assert all(words in told for words in said), told


@pytest.mark.pty
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in WRONG])
def test_the_chat_opens_and_says_what_is_wrong(harbour: Home, chat: Open, name: str) -> None:
    write, said = WRONG[name]
    harbour.settings.mkdir(parents=True, exist_ok=True)
    write(harbour.settings / "config.toml")
    with chat(columns=100, rows=40) as terminal:
        terminal.until(READY)
        for words in (*said, "/28.7k" if name != "trigger above window" else "k"):
            terminal.until(words)
        terminal.press("ctrl+q")
        assert terminal.wait() == 0

"""The command line as scripts use it: in this process for speed, and as a real program where that matters."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ctxchat.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output, of which each line must be JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def sentence(self) -> str:
        """Standard error, which must be one line for a person, and no traceback."""
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        assert self.err.startswith("ctxchat: ")
        return self.err.removeprefix("ctxchat: ").strip()


class Home:
    """Folders of one person: settings, data, and the folder they work in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings = root / "settings"
        self.data = root / "data"
        self.work = root / "work"
        for folder in (self.settings, self.work):
            folder.mkdir()

    @property
    def environ(self) -> dict[str, str]:
        """What a program started here sees: no keys, no colours asked for."""
        kept = {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "TMPDIR") if k in os.environ}
        own = {"CTXCHAT_CONFIG_DIR": str(self.settings), "CTXCHAT_DATA_DIR": str(self.data)}
        return {**kept, **own, "TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[2])}

    def put(self, name: str, value: object) -> str:
        """A file in the folder one works in, as text or JSON; its path."""
        file = self.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return str(file)

    def start(self, *arguments: str, input: str | None = None, **environ: str) -> Ran:
        """The real program, to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "ctxchat", *arguments],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.work,
            env={**self.environ, **environ},
        )
        return Ran(done.returncode, done.stdout, done.stderr)


Cli = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A fresh person, in their folder."""
    home = Home(tmp_path)
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield home


@pytest.fixture
def cli(home: Home) -> Cli:
    """Runs a command line in this process."""

    def run(*arguments: str) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(arguments))
        return Ran(code, out.getvalue(), err.getvalue())

    return run

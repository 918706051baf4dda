"""Checks that a release is whole, builds it and tries it; publishes nothing.

`uv run python release.py` names all that is missing at once. `--quick` leaves out the tests; `--keep-database` stores a database
that the built wheel wrote among those that later versions must open (tests/storage/older).
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ctxchat import __version__
from ctxchat.storage import schema

ROOT = Path(__file__).parent
OLDER = ROOT / "tests" / "storage" / "older" / f"schema-{len(schema.MIGRATIONS)}.db.gz"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
IN_WHEEL = (
    "ctxchat/py.typed",
    "ctxchat/_data/config.toml",
    "ctxchat/_data/themes/dark.toml",
    "ctxchat/agent/prompts/system.md",
    "ctxchat/tui/style/ctxchat.tcss",
    f"ctxchat-{__version__}.data/data/share/man/man1/ctxchat.1",
    f"ctxchat-{__version__}.dist-info/licenses/LICENSE",
)
QUESTION = "Which logger does Pier 7 report to?"
README = "# Harbour logger\n\nThe gauge at Pier 7 reports to Cormorant every 90 seconds.\n" + "\n".join(
    f"- Pier {n}: the gauge stands at the ladder, its cable runs to the shed." for n in range(1, 31)
)


def told(*command: str | Path, **more: str) -> str:
    """What a command printed. Raises SystemExit with what it said when it failed."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **more}, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def missing() -> Iterator[str]:
    """What stands in the way before anything is built."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    changes = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        yield f"CHANGELOG.md has no `## {__version__} (YYYY-MM-DD)`."
    if told("git", "tag", "--list", f"v{__version__}").strip():
        yield f"There is a tag v{__version__} already: raise the version in ctxchat/__init__.py."
    if told("git", "status", "--porcelain").strip():
        yield "There are changes that are not committed."
    if "urls" not in project:
        yield (
            "pyproject.toml has no [project.urls]. The owner fills in Homepage, Source, Issues and Changelog, and the whole "
            "addresses of the pictures in README.md: without them an index links to no source and shows no picture."
        )
    if not any("email" in author for author in project["authors"]):
        yield "pyproject.toml names no author with an address. The owner fills in name and email."
    if not OLDER.exists():
        yield f"{OLDER.relative_to(ROOT)} is missing: run this with --keep-database."
    for module in ("ctxchat.config.reference", "ctxchat.cli.reference"):
        before = told("git", "diff", "--stat")
        told(sys.executable, "-m", module)
        if told("git", "diff", "--stat") != before:
            yield f"What `python -m {module}` writes was not up to date."


def built(folder: Path) -> Path:
    """The wheel, built from the source distribution and looked into."""
    told("uv", "build", "--out-dir", folder)
    (wheel,) = folder.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    if lacking := [name for name in IN_WHEEL if name not in names]:
        raise SystemExit(f"{wheel.name} lacks {', '.join(lacking)}")
    for file in sorted(folder.glob("ctxchat-*")):
        print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")
    return wheel


def tried(wheel: Path, python: str, place: Path) -> bool:
    """The wheel in an empty environment, with an empty home: its first answer. False where there is no such Python."""
    made = ["uv", "venv", "-q", "-p", python, "--no-python-downloads", place / "venv"]
    if subprocess.run(made, stderr=subprocess.DEVNULL, check=False).returncode:
        return False
    told("uv", "pip", "install", "-q", "-p", place / "venv" / "bin" / "python", wheel)
    if __version__ not in asked(place, "--version"):
        raise SystemExit(f"{wheel.name} says another version")
    (place / "README.md").write_text(README)
    answer = asked(place, "run", QUESTION)
    if "Cormorant" not in answer:
        raise SystemExit(f"On Python {python} the first answer was:\n{answer}")
    if not (place / "venv" / "share" / "man" / "man1" / "ctxchat.1").exists():
        raise SystemExit("The manual page is not where `man` looks.")
    print(f"Python {python}: installed, answers")
    return True


def asked(place: Path, *words: str) -> str:
    """What the installed program says in this folder, at home nowhere else."""
    environ = {"HOME": str(place / "home"), "PATH": os.environ["PATH"], "CTXCHAT_DATA_DIR": str(place / "data")}
    command = [place / "venv" / "bin" / "ctxchat", *words]
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr}"


def keep_database(place: Path) -> None:
    """What the wheel wrote in this folder, and a compaction, for the tests of later versions."""
    for question in ("How often does it report?", "What is this folder about? @README.md", "Where is Cormorant named?"):
        asked(place, "run", "--continue", question)
    asked(place, "compact", "--window", "6000", "--strategy", "drop_tool_calls", "--keep-recent", "2")
    with sqlite3.connect(place / "data" / "ctxchat.db") as database:
        database.execute("VACUUM INTO ?", (str(place / "whole.db"),))
    OLDER.write_bytes(gzip.compress((place / "whole.db").read_bytes(), 9, mtime=0))
    print(f"{OLDER.relative_to(ROOT)}: {OLDER.stat().st_size:,} bytes")


def main(options: set[str]) -> None:
    problems = list(missing())
    if not options & {"--quick", "--keep-database"}:
        told("make", "check")
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(Path(folder, "dist"))
        for python in PYTHONS:
            place = Path(folder, python)
            place.mkdir()
            if not tried(wheel, python, place):
                problems.append(f"Python {python} is not on this machine, so the wheel was not tried with it.")
            elif "--keep-database" in options:
                keep_database(place)
                return
        shutil.copytree(wheel.parent, ROOT / "dist", dirs_exist_ok=True)
    if problems:
        raise SystemExit("Not ready:\n" + "\n".join(f"- {problem}" for problem in problems))
    print(f"Ready. Then: git tag v{__version__} && git push --tags && uv publish dist/ctxchat-{__version__}*")


if __name__ == "__main__":
    main(set(sys.argv[1:]))

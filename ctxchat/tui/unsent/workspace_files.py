"""The files of a folder, for `@` completion and the examples of an empty chat. Slow on large folders: call it in a thread."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ctxchat.tools.mentions import mention
from ctxchat.tools.walking import Rules, ignored, own_rules, rules_above

MAX_FILES = 20_000
SKIPPED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)


_CODE = (".py", ".js", ".ts", ".go", ".rs", ".java", ".c", ".cpp", ".rb", ".sh")
_WORDS = (
    *_CODE,
    ".md",
    ".rst",
    ".txt",
    ".org",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".ini",
    ".cfg",
    ".csv",
    ".html",
    ".css",
)
"""How names of files end that have words in them."""


def files_of(root: Path, most: int = MAX_FILES) -> tuple[str, ...]:
    """Paths below `root` with `/`, at most `most`, without what `.gitignore` files leave out. Unreadable folders are skipped."""
    found: list[str] = []
    for path in _walk(root):
        found.append(path)
        if len(found) >= most:
            break
    return tuple(found)


def _walk(root: Path) -> Iterator[str]:
    top = os.path.realpath(root)
    rules: dict[str, Rules] = {top: rules_above(top)}
    for folder, folders, files in os.walk(top):
        here = (*rules.pop(folder), *own_rules(folder, ".gitignore" in files))
        base = "" if folder == top else os.path.relpath(folder, top).replace(os.sep, "/") + "/"
        folders[:] = sorted(d for d in folders if d not in SKIPPED and not ignored(f"{folder}/{d}", True, here))
        rules.update((f"{folder}/{name}", here) for name in folders)
        yield from (base + name for name in sorted(files) if not ignored(f"{folder}/{name}", False, here))


def examples(files: tuple[str, ...]) -> list[str]:
    """Three things to ask about these files."""
    readmes = [f for f in files if f.rpartition("/")[2].lower() in _READMES]
    readme = min(readmes, key=lambda f: (f.count("/"), _READMES.index(f.rpartition("/")[2].lower())), default="")
    programs = [f for f in files if f.endswith(_CODE)]
    packages = Counter(_package(f) for f in programs if not _is_secondary(f))
    code = min(programs, key=lambda f: _far_from_the_heart(f, packages), default="")
    others = [f for f in files if f not in {readme, code} and _says_something(f)]
    other = min(others, key=lambda f: (bool(_FORMAL.search(f)), f.endswith(_CODE), f.count("/")), default="")
    asked = [f"What is this folder about? {mention(readme)}" if readme else "What is in this folder?"]
    if code:
        asked.append(f"Explain {mention(code)}")
    if other:
        asked.append(f"What does {mention(other)} say?")
    return [*asked, "Which files changed last?", "Find every TODO"][:3]


_READMES = ("readme.md", "readme.rst", "readme.txt", "readme")
_MAIN = frozenset({"main", "app", "cli", "core", "api", "server", "index", "lib"})
_FORMAL = re.compile(r"(?:^|/)(?:licen[cs]e|copying|notice|authors|code_of_conduct|requirements|manifest)[^/]*$", re.I)
_TECHNICAL = re.compile(r"^__|conftest|setup|version|build|noxfile|tasks|config")


def _far_from_the_heart(file: str, packages: Mapping[str, int]) -> tuple[bool, bool, int, int, bool, bool]:
    """Greater for what is beside the matter (tests, examples, files that only mark or build a package), for packages with little
    code in them, for what lies deep, and for names that promise no beginning or are private."""
    package = _package(file)
    stem = file.rpartition("/")[2].lower().partition(".")[0]
    begins = stem.strip("_") in _MAIN or stem == package.rpartition("/")[2].lower()
    rank = -packages.get(package, 0)
    return bool(_TECHNICAL.search(stem)), _is_secondary(file), rank, file.count("/"), not begins, stem.startswith("_")


def _package(file: str) -> str:
    """The folder at the top that a file belongs to, below `src` where there is one."""
    folders = file.split("/")[:-1]
    return "/".join(folders[: 2 if folders[:1] == ["src"] else 1])


def _is_secondary(file: str) -> bool:
    return any(
        p.startswith(("test", "doc", "example", "script", "bench", "extra", ".")) for p in file.lower().split("/")
    )


def _says_something(file: str) -> bool:
    """True for a file with words in it, by its name; not for an image, nor for what lies hidden."""
    name = file.rsplit("/", 1)[-1].lower()
    return (name.endswith(_WORDS) and not name.startswith(".")) or name in {
        "makefile",
        "dockerfile",
        "license",
        "notes",
        "todo",
    }

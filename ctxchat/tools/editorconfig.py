"""Reads the encoding of a file from the project's .editorconfig files."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from ctxchat.repository_files import read_checked
from ctxchat.tools.encodings import charset_named
from ctxchat.tools.paths import ResolvedPath
from ctxchat.tools.walking import matcher

MAX_BYTES = 100_000

_LINE = re.compile(r"\[(?P<glob>.+)\]\s*(?:[#;].*)?\Z|(?P<key>[\w-]+)\s*[=:]\s*(?P<value>[^#;]*)")
"""Of one that begins with no blank. Linear: a project wrote it."""


def agreed_encoding(place: ResolvedPath) -> str:
    """The codec that the nearest .editorconfig gives the file, looked for from its folder up to the workspace; empty for none."""
    if not place.inside:
        return ""
    found = ""
    for above in place.path.parents[: len(Path(place.shown).parts)]:
        charset, outermost = _charset(above, place.path.relative_to(above).as_posix())
        found = found or charset
        if outermost:
            break
    return charset_named(found, wide=True)


def _charset(folder: Path, name: str) -> tuple[str, bool]:
    """The encoding that one .editorconfig sets for a path below its folder, and whether it is the topmost (`root`), so that those
    above do not count."""
    text = read_checked(folder / ".editorconfig", folder, MAX_BYTES).data.decode("utf-8", "replace")
    found, outermost, holds = "", False, None
    for line in text.splitlines():
        if not (read := _LINE.match(line.strip())):
            continue
        if read["glob"]:
            holds = False
            with suppress(ValueError):
                holds = matcher(read["glob"])(name)
        elif holds is None:
            outermost = outermost or (read["key"].lower(), read["value"].strip().lower()) == ("root", "true")
        elif holds and read["key"].lower() == "charset":
            found = read["value"].strip().lower()
    return found, outermost

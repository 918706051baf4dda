"""Remembers which content of each file the agent has seen, so that it overwrites no file that has changed since. Kept with the
session. Knows contents by digest; if the content is kept, it can tell the change."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ctxchat.core.errors import ToolError
from ctxchat.core.file_changes import FileChange
from ctxchat.tools.contents import Contents, digest_of
from ctxchat.tools.diffs import difference
from ctxchat.tools.encodings import SNIFFED_BYTES, binary_kind, encoding_of
from ctxchat.tools.paths import ResolvedPath
from ctxchat.tools.tree import written

MAX_COMPARED_BYTES = 1_000_000
"""Bytes of a file up to which its content is kept, to say later what changed in it."""

TOLD_LINES = 60
"""Lines of a difference that are told: a longer one is to be read."""


class SeenFiles:
    """The seen files by resolved path. `folder` is where they are kept; None for this process only."""

    def __init__(self, folder: Path | None = None) -> None:
        self._log = folder / "seen" if folder else None
        self._contents = Contents(folder / "seen-contents") if folder else None
        self._digests: dict[str, str] | None = None
        self._lock = threading.Lock()

    def saw(self, path: Path, data: bytes) -> None:
        """The agent has seen this file, or written it so. What cannot be written down is remembered for now."""
        digest = digest_of(data)
        with self._lock:
            known = self._digests_seen()
            if known.get(str(path)) == digest:
                return
            known[str(path)] = digest
        with suppress(OSError):
            if self._contents and len(data) <= MAX_COMPARED_BYTES:
                self._contents.add_contents([(digest, data)])
            self._note({str(path): digest})

    def changed(self, path: Path, now: bytes) -> bool:
        """The agent saw this file, and it is another by now."""
        with self._lock:
            seen = self._digests_seen().get(str(path))
        return seen is not None and seen != digest_of(now)

    def check(self, place: ResolvedPath, now: bytes, *, whole: bool) -> None:
        """The file as it is may be changed. Raises ToolError, saying what changed since it was seen: with all of that told, it
        counts as seen. `whole`: all of it would be replaced, so it has to have been seen at all."""
        with self._lock:
            seen = self._digests_seen().get(str(place.path))
        if seen == digest_of(now) or (seen is None and not (whole and now)):
            return
        if seen is None:
            raise ToolError(
                f"{place.shown} is there already, and you have not read it; nothing was written.",
                "Read it first, or change a part of it with edit_file.",
            )
        told = self._difference(seen, now, place)
        if not told:
            raise ToolError(
                f"{place.shown} was changed by somebody else since you saw it; nothing was written.",
                "Read it again, then try again.",
            )
        self.saw(place.path, now)
        raise ToolError(
            f"{place.shown} was changed by somebody else since you saw it; nothing was written. What changed:\n{told}",
            "Keep that change: work from the file as it is now.",
        )

    def mark_own_changes(self, root: str, changes: Iterable[FileChange]) -> None:
        """A call of the agent's changed these: what was seen as it stood before, or was made by it, counts as seen now."""
        fresh: dict[str, str] = {}
        with self._lock:
            known = self._digests_seen()
            for change in changes:
                path = os.path.join(root, written(change.path))  # noqa: PTH118 - strings all the way
                before, after = change.before, change.after
                mine = known.get(path) == before.digest if before else True
                if mine and after and after.kind == "file" and after.kept:
                    fresh[path] = after.digest
            known |= fresh
        with suppress(OSError):
            self._note(fresh)

    def _difference(self, seen: str, now: bytes, place: ResolvedPath) -> str:
        """The change as a diff; empty if it cannot be told, or not completely."""
        with suppress(OSError):
            before = self._contents.get(seen) if self._contents else None
            if (
                before is None
                or len(now) > MAX_COMPARED_BYTES
                or binary_kind(before[:SNIFFED_BYTES])
                or binary_kind(now[:SNIFFED_BYTES])
            ):
                return ""
            old, new = (encoding_of(data).decode(data) for data in (before, now))
            text = difference(old, new, place.shown, TOLD_LINES + 1).text
            return "" if text.count("\n") > TOLD_LINES else text
        return ""

    def _digests_seen(self) -> dict[str, str]:
        if self._digests is None:
            self._digests = dict(_read_log(self._log)) if self._log else {}
        return self._digests

    def _note(self, seen: dict[str, str]) -> None:
        if self._log is None or not seen:
            return
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(b"".join(json.dumps(pair).encode() + b"\n" for pair in seen.items()))


def _read_log(log: Path) -> Iterable[tuple[str, str]]:
    """Line by line; a torn one costs itself."""
    try:
        lines = log.read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, TypeError):
            path, digest = json.loads(line)
            yield str(path), str(digest)

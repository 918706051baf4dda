"""aider: one Markdown file a folder (`.aider.chat.history.md`), a heading for each start of it, `####` before what a person
said and `>` before what the program said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ctxchat.core.messages import Message, Role
from ctxchat.importing.json_stream import Progress
from ctxchat.importing.steps import About, Begin, Said, Step

NAME, LABEL = "aider", "aider"

FILE = ".aider.chat.history.md"
_START = "# aider chat started at "
_ASKED = "#### "


def is_ours(file: Path) -> bool:
    """The first thing that is written at a start."""
    with file.open("rb") as opened:
        return f"\n{_START}".encode() in b"\n" + opened.read(4_096)


def files(home: Path) -> Iterator[Path]:
    """That of the home folder, and of folders right below it: aider keeps its history where it was started."""
    yield from (path for path in sorted((*home.glob(FILE), *home.glob(f"[!.]*/{FILE}"))) if path.is_file())


def steps(file: Path, progress: Progress) -> Iterator[Step]:
    """A session for each start. Each is told apart by its time; of two in the same second the later goes on with the earlier."""
    at = ""
    speaker, text = "", list[str]()
    said = 0
    begun = False

    def sealed() -> Iterator[Step]:
        nonlocal said
        words = "\n".join(text).strip("\n")
        if words.strip() and speaker:
            role: Role = "assistant" if speaker == "assistant" else "user"
            said += 1
            yield Said(str(said), Message(0, role, words, at=at), "note" if speaker == "program" else "")

    with file.open("rb") as opened:
        for raw in opened:
            progress(len(raw))
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if line.startswith(_START):
                yield from sealed()
                speaker, text = "", []
                started = line.removeprefix(_START).strip()
                at = f"{started.replace(' ', 'T')}Z" if len(started) == 19 else ""
                yield Begin(f"{file.absolute().parent}@{started}")
                yield About(folder=str(file.absolute().parent))
                begun = True
                continue
            if not begun:
                continue
            who, words = _who(line, speaker)
            if who != speaker:
                yield from sealed()
                speaker, text = who, []
            text.append(words)
    yield from sealed()


def _who(line: str, before: str) -> tuple[str, str]:
    """Whose line it is. A blank one belongs to whoever spoke; after that the assistant has the word."""
    if line.startswith(_ASKED) or line == _ASKED.strip():
        return "person", line[len(_ASKED) :]
    if line.startswith(">"):
        return "program", line[1:].strip()
    if not line.strip():
        return before, line
    return "assistant", line

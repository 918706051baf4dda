"""Reads aider's history: one Markdown file in each folder (`.aider.chat.history.md`), with a heading for each start of aider,
`####` before the person's lines and `>` before the program's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ctxchat.core.messages import Message, Role
from ctxchat.importing.json_stream import Progress
from ctxchat.importing.steps import About, Begin, Said, Step

NAME, LABEL = "aider", "aider"

FILE = ".aider.chat.history.md"
_START = "# aider chat started at "
_PERSON_MARK = "#### "


def is_ours(file: Path) -> bool:
    """Whether the file has the heading that aider writes at a start."""
    with file.open("rb") as opened:
        return f"\n{_START}".encode() in b"\n" + opened.read(4_096)


def files(home: Path) -> Iterator[Path]:
    """The histories in the home folder and in folders directly below it: aider writes them where it is started."""
    yield from (path for path in sorted((*home.glob(FILE), *home.glob(f"[!.]*/{FILE}"))) if path.is_file())


def steps(file: Path, progress: Progress) -> Iterator[Step]:
    """The sessions of a file, one for each start of aider. They are identified by their time, so two starts in one second are one
    session."""
    at = ""
    speaker, text = "", list[str]()
    number = 0  # of the last message
    begun = False

    def finish_message() -> Iterator[Step]:
        nonlocal number
        content = "\n".join(text).strip("\n")
        if content.strip() and speaker:
            role: Role = "assistant" if speaker == "assistant" else "user"
            number += 1
            yield Said(str(number), Message(0, role, content, at=at), "note" if speaker == "program" else "")

    with file.open("rb") as opened:
        for raw in opened:
            progress(len(raw))
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if line.startswith(_START):
                yield from finish_message()
                speaker, text = "", []
                started = line.removeprefix(_START).strip()
                at = f"{started.replace(' ', 'T')}Z" if len(started) == 19 else ""
                yield Begin(f"{file.absolute().parent}@{started}")
                yield About(folder=str(file.absolute().parent))
                begun = True
                continue
            if not begun:
                continue
            new_speaker, content = _speaker_and_text(line, speaker)
            if new_speaker != speaker:
                yield from finish_message()
                speaker, text = new_speaker, []
            text.append(content)
    yield from finish_message()


def _speaker_and_text(line: str, before: str) -> tuple[str, str]:
    """The speaker of a line and its text without marks. A blank line belongs to the speaker of the line `before`."""
    if line.startswith(_PERSON_MARK) or line == _PERSON_MARK.strip():
        return "person", line[len(_PERSON_MARK) :]
    if line.startswith(">"):
        return "program", line[1:].strip()
    if not line.strip():
        return before, line
    return "assistant", line

"""remember, recall, ask_user and make_room: tools that touch no file of the workspace. Where answers come from, and who makes
room, is handed in."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolOutput, ToolQuestion
from ctxchat.core.tool_names import ASK_USER
from ctxchat.core.tooluse import ANSWERED
from ctxchat.tools.text import clip_line, without_zeros
from ctxchat.tools.tool import Arguments, Pieces, Tool

Search = Callable[[str, str, str], Awaitable[str]]
"""A query, where to look (`session` or `folder`) and how much room there is (`small` or `large`) to what was found, ready to be
read; empty for nothing."""

Show = Callable[[str, str], Awaitable[str]]
"""The id of a message, group or compaction, or a range, and how much room there is, to its text; empty where there is none."""


class AskArguments(Arguments, frozen=True):
    question: str
    options: list[str] = []


class AskUser(Tool[AskArguments]):
    name = ASK_USER
    about = "Ask the user when only they can decide and guessing would be costly. One question at a time."
    arguments = AskArguments
    reads_only = False

    def access_needed(self, arguments: AskArguments, context: ToolContext) -> AccessRequest:
        if not arguments.question.strip():
            raise ToolError("The question is empty.")
        return AccessRequest("none", summary=f"ask: {clip_line(' '.join(arguments.question.split()), 200)}")

    async def execute(self, arguments: AskArguments, context: ToolContext) -> Pieces:
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def answered(text: str) -> None:
            if not waiting.done():  # a second answer, or one after the call was cancelled
                waiting.set_result(text)

        yield ToolQuestion(arguments.question.strip(), tuple(arguments.options), answered)
        answer = await waiting
        said = f"{ANSWERED}{answer}" if answer.strip() else "The user gave no answer. Decide yourself and say so."
        yield ToolOutput(said)


class RememberArguments(Arguments, frozen=True):
    text: Annotated[str, msgspec.Meta(description="One fact, in one sentence")]


class Remember(Tool[RememberArguments]):
    """Appends to the user's memory file at `path`, which is made when it is first needed."""

    name = "remember"
    about = (
        "Keep a lasting wish or fact for all later sessions, in every folder: name the project that it is about. "
        "Not for this task's details."
    )
    arguments = RememberArguments
    reads_only = False

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def access_needed(self, arguments: RememberArguments, context: ToolContext) -> AccessRequest:
        line = one_line(arguments.text)
        summary = f"remember: {clip_line(line, 200)}"
        return AccessRequest(
            "write", str(self._path), False, summary, preview=f"+- {line}\n", patterns=(str(self._path),)
        )

    async def execute(self, arguments: RememberArguments, context: ToolContext) -> Pieces:
        line = f"- {one_line(arguments.text)}"
        new = await asyncio.to_thread(append_line, self._path, line)
        yield ToolOutput("Remembered." if new else "That is remembered already.", diff=f"+{line}\n" if new else "")


def one_line(text: str) -> str:
    """A memory as one line. Raises ToolError for none, and for one that is too long."""
    line = " ".join(without_zeros(text).split())  # with a zero in it the whole file is taken for no text
    if not line:
        raise ToolError("There is nothing to remember: text is empty.")
    if len(line) > 1000:
        raise ToolError(f"That is {len(line)} characters; a memory is at most 1000.", "Say it shorter.")
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The text holds characters that cannot be written.") from error
    return line


def append_line(path: Path, line: str, mode: int = 0o600) -> bool:
    """Add a line at the end of a file, made with this mode where there is none; False where it is there already. Raises
    OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode)
    with os.fdopen(handle, "a+b") as file:
        # Or two that add the same line at once both find it missing. Windows has no such lock, nor have some network folders.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        old = file.read().decode("utf-8", "replace")
        if line in old.split("\n"):
            return False
        file.write((("\n" if old and not old.endswith("\n") else "") + line + "\n").encode())
    return True


class RecallArguments(Arguments, frozen=True):
    query: Annotated[str, msgspec.Meta(description="A question, or words; who:user tool:shell since:2d narrow it")] = ""
    id: Annotated[str, msgspec.Meta(description="m12, m12-m20, or an id of a summary: shown whole")] = ""
    scope: Annotated[Literal["session", "folder"], msgspec.Meta(description="folder: its other sessions")] = "session"
    room: Annotated[Literal["small", "large"], msgspec.Meta(description="2,000 or 6,000 tokens")] = "small"


class Recall(Tool[RecallArguments]):
    name = "recall"
    about = "This conversation's archive: what was summarised or shortened, word for word. Give query or id."
    arguments = RecallArguments
    reads_only = True

    def __init__(self, search: Search, show: Show) -> None:
        super().__init__()
        self._search, self._show = search, show

    def access_needed(self, arguments: RecallArguments, context: ToolContext) -> AccessRequest:
        wanted = arguments.id.strip() or arguments.query.strip()
        if not wanted:
            raise ToolError("recall needs a query or an id.")
        return AccessRequest("none", summary=f"recall {clip_line(wanted, 200)}")

    async def execute(self, arguments: RecallArguments, context: ToolContext) -> Pieces:
        if name := arguments.id.strip():
            text = await self._show(name, arguments.room)
            yield ToolOutput(text or f"There is nothing with the id {name}.", "ok" if text else "error")
            return
        yield ToolOutput(
            await self._search(arguments.query.strip(), arguments.scope, arguments.room)
            or f"Nothing in the archive matches {arguments.query!r}."
        )


AskForRoom = Callable[[str], str]
"""What has to stay, to what the model is told. Room is made later, where no call is open."""


class RoomArguments(Arguments, frozen=True):
    keep: Annotated[str, msgspec.Meta(description="What a summary must keep")] = ""


class MakeRoom(Tool[RoomArguments]):
    name = "make_room"
    about = (
        "Have older parts of this conversation shortened or summarised, before a long step. They stay in the archive."
    )
    arguments = RoomArguments
    reads_only = False

    def __init__(self, ask: AskForRoom) -> None:
        super().__init__()
        self._ask = ask

    def access_needed(self, arguments: RoomArguments, context: ToolContext) -> AccessRequest:
        keep = " ".join(arguments.keep.split())
        return AccessRequest("none", summary=f"make room{f', keep {clip_line(keep, 200)}' if keep else ''}")

    async def execute(self, arguments: RoomArguments, context: ToolContext) -> Pieces:
        yield ToolOutput(self._ask(arguments.keep.strip()))

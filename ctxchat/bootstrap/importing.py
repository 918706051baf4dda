"""What other agents left on this machine, and bringing it in beside a chat: in a process of its own, which takes the processor
only when nobody else wants it, is heard of line by line and can be ended at any time. What it has stored by then stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ctxchat.bootstrap import bringing
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.importing import formats
from ctxchat.importing.outcome import Importable, ImportNews
from ctxchat.own_processes import module_command
from ctxchat.storage.database import Database

ENDING = 5.0
"""Seconds that an import which is to end has to leave its transaction."""

_LONGEST = 10_000_000  # bytes of a line: one session, with the names of all its damaged lines
_TOLD = "told of other agents' sessions"
"""Row of the store's `meta` table."""

_news = msgspec.json.Decoder(ImportNews)


async def importable(database: Database, path: Path | None) -> list[Importable]:
    """Sessions that are not here yet, or have changed: of all agents in their usual places, or in this file or folder."""
    same = await database.run(bringing.unchanged, database)

    def look() -> list[Importable]:
        there: list[Importable] = []
        for found in formats.found(Path.home()) if path is None else formats.at(path):
            sizes = [file.stat().st_size for file in found.files if not same(file)]
            if sizes:
                there.append(Importable(found.form.label, len(sizes), sum(sizes)))
        return there

    with suppress(OSError):
        return await asyncio.to_thread(look)
    return []


async def first_found(database: Database) -> Sequence[Importable]:
    """The same of the usual places, the first time that anything is there; nothing from then on."""
    with suppress(StorageError):
        if await database.run(database.remembered, _TOLD):
            return ()
        if found := await importable(database, None):
            await database.run(database.remember, _TOLD, "yes")
            return found
    return ()


async def importing(path: Path | None) -> AsyncGenerator[ImportNews, None]:
    """Import a file or folder, or all that is found; closing the generator ends it. Raises CtxchatError with what the process
    said where it failed."""
    what = ["--all"] if path is None else ["--", str(path)]
    process = await asyncio.create_subprocess_exec(
        *module_command("ctxchat", "sessions", "import", "--events", *what),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST,
    )
    assert process.stdout and process.stderr
    said = asyncio.create_task(process.stderr.read())
    known = False
    try:
        async for line in process.stdout:
            with suppress(msgspec.DecodeError):
                yield _news.decode(line)
                known = True
        if await process.wait() and not known:
            words = (await said).decode("utf-8", "replace").strip().removeprefix("ctxchat: ")
            raise CtxchatError(
                words or f"The import ended with exit code {process.returncode}.", "Nothing was brought in."
            )
    finally:
        if process.returncode is None:
            process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), ENDING)
        if process.returncode is None:
            process.kill()
            await process.wait()
        said.cancel()

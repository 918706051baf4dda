"""The first look around, when no model is set: what could answer here, asked about once and never again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ctxchat.core.errors import StorageError
from ctxchat.models.discovery import FirstLook, FoundModel, offers
from ctxchat.storage.database import Database

NO_MODEL = "No model is set: the offline assistant answers, and quotes your files. /model shows what else is there."

NOTHING_FOUND = (
    "No key or local server found: the offline assistant answers, and quotes your files. For a model, set a key "
    "(OPENAI_API_KEY, …) or start Ollama, LM Studio, llama.cpp or vLLM; then /model."
)

_ASKED = "asked for a model"
"""A row of the store's `meta` table; what was chosen is in the person's own settings file."""


async def first_look(
    model: str, database: Database, discover: Callable[[], Awaitable[Sequence[FoundModel]]]
) -> FirstLook:
    """What to ask, or to say. `model` is the one that is set; where there is one, nothing. Having been asked is kept, so that
    whoever did not answer is not asked again; where nothing was found the next start looks anew."""
    if model:
        return FirstLook()
    if _asked(database):
        return FirstLook(note=NO_MODEL)
    found = offers(await discover())
    if not found:
        return FirstLook(note=NOTHING_FOUND)
    await _keep(database)
    return FirstLook(found)


def _asked(database: Database) -> bool:
    try:
        return bool(database.read("SELECT 1 FROM meta WHERE key = ?", (_ASKED,)))
    except StorageError:
        return True  # a store that cannot be read has other troubles to tell


async def _keep(database: Database) -> None:
    def write() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_ASKED, "yes"))

    try:
        await database.run(write)
    except StorageError:
        return  # then it is asked once more, which does no harm

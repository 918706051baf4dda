"""The first look around, when no model is set: what could answer here, asked about once and never again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ctxchat.core.errors import StorageError
from ctxchat.models.discovery import FirstLook, FoundModel, offers
from ctxchat.storage.database import Database

NOTHING_FOUND = (
    "No key or local server found: the offline assistant answers, and quotes your files. For a model, set a key "
    "(OPENAI_API_KEY, …) or start Ollama, LM Studio, llama.cpp or vLLM; then /model. New here? `ctxchat tour` takes two minutes."
)

_ASKED = "asked for a model"
_TOLD = "told that there is no model"
"""Rows of the store's `meta` table; what was chosen is in the person's own settings file."""


async def first_look(
    model: str, database: Database, discover: Callable[[], Awaitable[Sequence[FoundModel]]]
) -> FirstLook:
    """What to ask, or to say, once each: the header names the offline assistant from then on. `model` is the one that is set;
    where there is one, nothing. Where nothing was found the next start looks anew."""
    if model or _kept(database, _ASKED):
        return FirstLook()
    found = offers(await discover())
    told = not found and _kept(database, _TOLD)
    if not told:
        await _keep(database, _ASKED if found else _TOLD)
    return FirstLook(found, "" if found or told else NOTHING_FOUND)


def _kept(database: Database, key: str) -> bool:
    try:
        return bool(database.read("SELECT 1 FROM meta WHERE key = ?", (key,)))
    except StorageError:
        return True  # a store that cannot be read has other troubles to tell


async def _keep(database: Database, key: str) -> None:
    def write() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, "yes"))

    try:
        await database.run(write)
    except StorageError:
        return  # then it is said once more, which does no harm

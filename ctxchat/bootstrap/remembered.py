"""Keeps in the store what is remembered between starts beside sessions: what was learned about models, the day's spending, and
which questions a person was asked once."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from ctxchat.agent.model_knowledge import Known
from ctxchat.core.errors import StorageError
from ctxchat.models.discovery import FirstLook, FoundModel, offers
from ctxchat.storage.database import Database


class StoredModelKnowledge:
    """Implements `agent.model_knowledge.ModelKnowledgeStore`, with a row for each model. If the store fails, only the precision
    of estimates is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, model: str) -> Known:
        """What is known of a model; nothing if it cannot be read."""
        try:
            found = self._database.remembered(f"model:{model}")
            return msgspec.json.decode(found, type=Known) if found else Known()
        except (StorageError, msgspec.DecodeError):
            return Known()

    async def save(self, model: str, known: Known) -> None:
        """Store what is known of a model."""
        with suppress(StorageError):
            await self._database.run(self._database.remember, f"model:{model}", msgspec.json.encode(known).decode())


class StoredDayTotal:
    """Implements `agent.spending_budget.DayTotal`: one sum for each day in the store, shared by all programs that use it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def today(self) -> float:
        """The day's sum in US dollars; 0 if it cannot be read."""
        with suppress(StorageError):
            return float(await self._database.run(self._database.remembered, _day_key()) or 0.0)
        return 0.0

    async def add(self, usd: float) -> float:
        """Add to the day's sum, and return the new sum. If that cannot be written, it is not counted."""

        def count_up(connection: sqlite3.Connection) -> float:
            key = _day_key()
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = CAST(value AS REAL) + excluded.value",
                (key, usd),
            )
            return float(connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0])

        with suppress(StorageError):
            return await self._database.run(self._database.write, count_up)
        return usd


def _day_key() -> str:
    return f"spent:{datetime.now(UTC).date().isoformat()}"


NOTHING_FOUND = (
    "No key or local server found: the offline assistant answers, and quotes your files. For a model, set a key "
    "(OPENAI_API_KEY, …) or start Ollama, LM Studio, llama.cpp or vLLM; then /model."
)

_ASKED = "asked for a model"
_TOLD = "told that there is no model"


async def first_look(
    model: str, database: Database, discover: Callable[[], Awaitable[Sequence[FoundModel]]]
) -> FirstLook:
    """The question or note to show at the start if no `model` is set, once each: afterwards the header names the offline
    assistant. If no model was found, the next start searches again."""
    if model or _is_remembered(database, _ASKED):
        return FirstLook()
    found = offers(await discover())
    told = not found and _is_remembered(database, _TOLD)
    if not told:
        with suppress(StorageError):  # then it is said once more, which does no harm
            await database.run(database.remember, _ASKED if found else _TOLD, "yes")
    return FirstLook(found, "" if found or told else NOTHING_FOUND)


def _is_remembered(database: Database, key: str) -> bool:
    try:
        return database.remembered(key) is not None
    except StorageError:
        return True  # a store that cannot be read has other troubles to tell

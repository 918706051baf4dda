"""What was learned about models, kept in the store from session to session."""

from __future__ import annotations

import msgspec

from ctxchat.agent.learned import Known
from ctxchat.core.errors import StorageError
from ctxchat.storage.database import Database


class StoredAssumptions:
    """Fulfils `agent.assumptions.Assumptions` with the store's `meta` table, one row a model."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, model: str) -> Known:
        """What is known; nothing where it cannot be read."""
        try:
            found = self._database.read("SELECT value FROM meta WHERE key = ?", (_key(model),))
            return msgspec.json.decode(found[0][0], type=Known) if found else Known()
        except (StorageError, msgspec.DecodeError):
            return Known()

    async def save(self, model: str, known: Known) -> None:
        """Keep it. A store that refuses costs an estimate its precision, nothing else."""
        try:
            await self._database.run(self._write, _key(model), msgspec.json.encode(known).decode())
        except StorageError:
            return

    def _write(self, key: str, value: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def _key(model: str) -> str:
    return f"model:{model}"

"""Opening sub-agents for the calls of one session: a session each, below the caller's, by the same resolver of settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ctxchat.agent.gate import Gate
from ctxchat.agent.session import Session
from ctxchat.bootstrap.agents import in_force
from ctxchat.bootstrap.shared import Shared
from ctxchat.core.journal import AgentChosen, ModelChosen
from ctxchat.storage import sessions

OpenBelow = Callable[[str, Gate], Awaitable[Session]]
"""The session of that id, behind this gate."""


class SubAgents:
    """Fulfils `tools.delegating.Open` for the session `caller`, whose model is asked at `address` now, behind its `gate`."""

    def __init__(
        self, shared: Shared, caller: str, address: Callable[[], str | None], gate: Gate, open_below: OpenBelow
    ) -> None:
        self._shared = shared
        self._caller = caller
        self._address = address
        self._gate = gate
        self._open_below = open_below

    async def __call__(self, agent: str) -> Session:
        """A new session for that agent (empty: the usual one), with the caller's model unless the agent names its own, and with
        no more rights than the caller has now. Raises UsageError for an agent nobody has."""
        shared = self._shared
        settings, own = in_force(shared.loaded.settings, shared.flags, agent)
        caller = await shared.database.run(sessions.row, shared.database, self._caller)
        model = caller.model if own.model is None else settings.model
        records = (AgentChosen(agent), ModelChosen(model, self._address() if model == caller.model else None))
        session = await shared.database.run(
            sessions.create,
            shared.database,
            model=model,
            parent=self._caller,
            folder=str(shared.workspace),
            delegated=True,
            records=records,
        )
        return await self._open_below(session, self._gate.below(own.permissions or "all"))

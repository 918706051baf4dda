"""Making room in one session, as the outside sees it: look, run, agree, put off. What a pass does is the compactor's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from ctxchat.agent.compactor import Compactor
from ctxchat.agent.consent import When
from ctxchat.agent.preview import Preview
from ctxchat.agent.session_lock import SessionLock
from ctxchat.core.events import Stamped
from ctxchat.core.record import Reason


class Compaction:
    """The verbs for passes; those that run one yield its events."""

    def __init__(self, compactor: Compactor, lock: SessionLock) -> None:
        self._compactor = compactor
        self._lock = lock

    @property
    def ghost(self) -> int:
        """Tokens the window would hold after the compaction that stands prepared, 0 for none."""
        return self._compactor.ghost

    async def preview(
        self,
        instructions: str = "",
        keep_recent: int | None = None,
        *,
        strategy: str = "",
        target: float | None = None,
    ) -> Preview:
        """What freeing up context would do. Calls no model, sends nothing anywhere."""
        return await self._compactor.preview(instructions, keep_recent, strategy, target, look=not self._lock.busy)

    async def with_steps(self, preview: Preview, steps: Sequence[str]) -> Preview:
        """The preview with the named steps only: steps build on one another, so what is left is planned and weighed anew."""
        return await self._compactor.with_steps(preview, steps)

    def draft_summary(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[str, None]:
        """The summary of a previewed pass as it is written, to be edited and handed to `free_up`. Nothing comes where the
        steps need none. Changes nothing; raises ModelError."""
        return self._compactor.draft(preview, steps)

    def free_up(
        self,
        preview: Preview,
        steps: Sequence[str] | None = None,
        *,
        summary: str | None = None,
        reason: Reason = "manual",
    ) -> AsyncGenerator[Stamped, None]:
        """Run a previewed pass, only the named steps of it where given, with a summary a person wrote where there is one.
        Closing it leaves everything as it was."""
        return self._lock.stream(partial(self._compactor.run, preview, steps=steps, reason=reason, summary=summary))

    def make_room(self) -> AsyncGenerator[Stamped, None]:
        """Between turns: the pass that is due or agreed, where there is one, without waiting for the next message."""
        return self._lock.stream(partial(self._compactor.make_room, 0))

    def agree(self, when: When, instructions: str = "") -> None:
        """Yes to a CompactionSuggested: `now`, at the next place where no call is open, or `after` the turn has ended."""
        self._compactor.consent.agree(when, instructions)

    def snooze(self, turns: int) -> None:
        """Later: nothing by itself and no question for the rest of this turn and `turns` more, while the window can hold it."""
        self._compactor.consent.rest(turns)

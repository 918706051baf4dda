"""Where calls wait for a person: open questions by call id, and the rules given so far.

The futures live here and nowhere else; events carry values only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ctxchat.agent.permissions import Judgement, judge
from ctxchat.core.access import Demand, Mode, Rule, Verdict


class Answer(msgspec.Struct, frozen=True):
    """What a person said, and why where they did."""

    verdict: Verdict
    reason: str = ""


class Gate:
    """Judges calls and holds the ones that wait.

    `interactive` is False where nobody can be asked: then what would ask is denied. `store` keeps a rule for good.
    """

    def __init__(
        self,
        mode: Mode = "ask",
        rules: Sequence[Rule] = (),
        *,
        interactive: bool = True,
        store: Callable[[Rule], Awaitable[None]] | None = None,
    ) -> None:
        self.mode: Mode = mode
        self._rules = list(rules)
        self._interactive = interactive
        self._store = store
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    def judge(self, tool: str, demand: Demand) -> Judgement:
        """What mode and rules say; `ask` only where somebody can be asked."""
        judgement = judge(tool, demand, self.mode, self._rules)
        if judgement.verdict == "ask" and not self._interactive:
            reason = f"Nobody can be asked here and no rule allows it: {tool} was not run."
            return Judgement("deny", "nobody to ask", reason)
        return judgement

    def open(self, call_id: str) -> asyncio.Future[Answer]:
        """A question is asked; the future is done when it is answered."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = future
        return future

    def close(self, call_id: str) -> None:
        """The question no longer matters."""
        self._waiting.pop(call_id, None)

    def answer(self, call_id: str, answer: Answer) -> None:
        """A person answered; a question that is no longer open is left alone."""
        future = self._waiting.get(call_id)
        if future is not None and not future.done():
            future.set_result(answer)

    async def allow(self, rule: Rule, verdict: Verdict) -> None:
        """Remember a rule for the session, and for good where that was said."""
        self._rules.append(rule)
        if verdict == "always" and self._store is not None:
            await self._store(rule)

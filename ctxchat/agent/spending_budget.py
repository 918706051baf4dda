"""Holds every model call of a session, of its summaries and of its sub-agents against the spending limits, before it is made.

Knows no provider, no settings file and no store: the day's sum over all sessions is kept by whoever hands it in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar, NoReturn, Protocol

import msgspec

from ctxchat.core.errors import ModelError
from ctxchat.core.events import Usage
from ctxchat.core.limits import (
    MIN_OUTPUT,
    SCOPES,
    WARNING_SHARE,
    Limit,
    Scope,
    Spend,
    SpendingLimits,
    dearest,
    limits_in_force,
    longest_reply,
)
from ctxchat.core.ports import ModelPort, ModelRequest
from ctxchat.core.prices import ModelPrices

MAX_COUNT_RATIO = 1.35
"""A server's tokenizer may count so many times what we do."""

USUAL_OUTPUT_TOKENS = 32_000
"""Tokens a reply may have where nothing says how many."""


class DayTotal(Protocol):
    """The US dollars that all sessions have spent today (UTC)."""

    async def today(self) -> float: ...
    async def add(self, usd: float) -> float:
        """Count this in; the sum then."""
        ...


class SpendingBudget:
    """What may still be spent by a session and all its sub-agents; `cost_usd` is what it has cost already."""

    _SCOPES: ClassVar[tuple[Scope, ...]] = SCOPES

    def __init__(
        self,
        limits: SpendingLimits | None = None,
        *,
        session: str = "",
        cost_usd: float = 0.0,
        day: DayTotal | None = None,
    ) -> None:
        self.limits = limits or SpendingLimits()
        self._session = session
        self._spent: dict[Scope, Spend] = {"session": Spend(cost_usd)}
        self._day = day
        self._reserved = Spend()  # the most that calls under way can come to
        self._calls = _Calls()
        self._told: set[tuple[Scope, bool, float]] = set()
        self.reached: Limit | None = None
        """The limit that the last call of this turn was not made for."""

    def begin_turn(self, session: str) -> None:
        """What comes now is another turn's; one of a sub-agent is a part of its caller's."""
        if session == self._session:
            self._spent["turn"] = Spend()
            self.reached = None

    def in_force(self) -> tuple[Limit, ...]:
        """The limits that are set, with what is spent of each; calls under way count at their dearest."""
        return self._in_force()

    def _in_force(self, reserved: Spend | None = None) -> tuple[Limit, ...]:
        """The same; calls under way count for as much as is `reserved`, None for their dearest."""
        held = self._reserved if reserved is None else reserved
        spent: dict[Scope, Spend] = {s: self._spent.get(s, Spend()) + held for s in self._SCOPES}
        return tuple(limits_in_force(self.limits, spent))

    def warnings(self) -> tuple[str, ...]:
        """A sentence for each limit that is nearly spent, once."""
        found: list[str] = []
        for limit in limits_in_force(self.limits, self._spent):
            key = (limit.scope, limit.in_tokens, limit.most)
            if limit.spent >= limit.most * WARNING_SHARE and key not in self._told:
                self._told.add(key)
                found.append(f"{limit.words} is spent.")
        return tuple(found)

    async def admit(self, model: ModelPort, request: ModelRequest) -> tuple[ModelRequest, Spend]:
        """The request, its reply made as short as the limits want it, and what it can cost at most; `pay` it when it has ended.
        Waits, holding nothing back, for calls under way where only what these may cost is in its way: they mostly cost far less.
        Raises ModelError (`limit`) where not even a short reply would keep to the limits."""
        prices, prompt = model.prices(), int(request.view.raw * MAX_COUNT_RATIO) + 1
        wanted = request.max_output or USUAL_OUTPUT_TOKENS
        while True:
            await self._look_at_day()
            room, passed = _longest_reply(self.in_force(), prices, prompt, wanted)
            if passed is None:
                break
            lasting = _longest_reply(self._in_force(Spend()), prices, prompt, wanted)[1]
            if lasting or not self._calls.under_way:
                self._refuse(lasting or passed)
            await self._calls.one_ended.wait()
        reserved = dearest(prices, prompt, room)
        self._reserve(reserved)
        self._calls.begin()
        return (request if room == wanted else msgspec.structs.replace(request, max_output=room)), reserved

    async def pay(self, reserved: Spend, usage: Usage | None, *, begun: bool) -> None:
        """A call is over: it cost what its `usage` says; one that had `begun` and says nothing may have cost all."""
        paid = Spend(usage.cost_usd, usage.prompt + usage.completion) if usage else reserved if begun else Spend()
        try:
            await self._pay_day(paid)
        finally:
            self._settle(reserved, paid)
            self._calls.end()

    def _refuse(self, passed: Limit) -> NoReturn:
        self.reached = passed
        raise ModelError(
            f"The limit is reached: {passed.words} is spent, and this request could cost more than what is left. "
            "It was not made.",
            "[limits] in the settings raises it."
            if passed.scope == "task"
            else f"`/limit {passed.scope} …` raises it for this session, [limits] in the settings for good.",
            kind="limit",
        )

    async def _look_at_day(self) -> None:
        if self._day and self.limits.day:
            self._spent["day"] = Spend(await self._day.today())

    async def _pay_day(self, paid: Spend) -> None:
        if self._day and paid.usd:
            self._spent["day"] = Spend(await self._day.add(paid.usd))

    def _reserve(self, most: Spend) -> None:
        """Hold back what a call can cost at most."""
        self._reserved += most

    def _settle(self, reserved: Spend, paid: Spend) -> None:
        """What was held back for a call, against what it cost."""
        self._reserved = Spend(self._reserved.usd - reserved.usd, self._reserved.tokens - reserved.tokens)
        for scope in self._SCOPES:
            if scope != "day":
                self._spent[scope] = self._spent.get(scope, Spend()) + paid

    def raise_limit(self, scope: Scope, most: float, *, in_tokens: bool = False) -> None:
        """So many US dollars (or tokens) from now on, for this session; 0 for no limit."""
        changed = {f"{scope}_tokens": round(most)} if in_tokens else {scope: most}
        self.limits = msgspec.structs.replace(self.limits, **changed)


def _longest_reply(
    limits: Iterable[Limit], prices: ModelPrices | None, prompt: int, wanted: int
) -> tuple[int, Limit | None]:
    """Tokens that a reply may have, of those it wants; and the limit that leaves too few."""
    room = wanted
    for limit in limits:
        most = longest_reply(limit, prices, prompt)
        if most is not None and most < min(MIN_OUTPUT, wanted):
            return most, limit
        room = room if most is None else min(room, most)
    return room, None


class _Calls:
    """The calls of a session and all its sub-agents that are under way."""

    def __init__(self) -> None:
        self.under_way = 0
        self.one_ended = asyncio.Event()
        """Set when the next of them has ended; there is another one from then on."""

    def begin(self) -> None:
        self.under_way += 1

    def end(self) -> None:
        self.under_way -= 1
        self.one_ended.set()
        self.one_ended = asyncio.Event()


class TaskBudget(SpendingBudget):
    """What a sub-agent may still spend on its task; all of it is spent by its caller as well, `above`, where it is told of."""

    _SCOPES = ("task",)

    def __init__(self, above: SpendingBudget) -> None:
        super().__init__(above.limits)
        self._above = above
        self._calls = above._calls

    def begin_turn(self, session: str) -> None:
        self._spent.clear()

    def warnings(self) -> tuple[str, ...]:
        return self._above.warnings()

    def _in_force(self, reserved: Spend | None = None) -> tuple[Limit, ...]:
        return (*self._above._in_force(reserved), *super()._in_force(reserved))

    def _refuse(self, passed: Limit) -> NoReturn:
        if passed.scope in self._SCOPES:
            super()._refuse(passed)
        self._above._refuse(passed)

    async def _look_at_day(self) -> None:
        await self._above._look_at_day()

    async def _pay_day(self, paid: Spend) -> None:
        await self._above._pay_day(paid)

    def _reserve(self, most: Spend) -> None:
        super()._reserve(most)
        self._above._reserve(most)

    def _settle(self, reserved: Spend, paid: Spend) -> None:
        super()._settle(reserved, paid)
        self._above._settle(reserved, paid)


UNLIMITED = SpendingBudget()
"""For calls that no session pays for."""

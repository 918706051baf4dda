"""Checks every model call of a session, of its summaries and of its sub-agents against the spending limits, before it is made.

Knows no provider, no settings file and no store: the day's sum over all sessions is kept behind `DayTotal`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
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
"""Most by which a server's token count may exceed ours, as a factor."""

USUAL_OUTPUT_TOKENS = 32_000
"""Tokens assumed as a reply's limit where a request states none."""


OnWait = Callable[[str], Awaitable[object]]
"""Is told in words that a call waits, and that it goes on."""


class DayTotal(Protocol):
    """The US dollars that all sessions have spent today (UTC)."""

    async def today(self) -> float: ...
    async def add(self, usd: float) -> float:
        """Add an amount, and return the new sum."""
        ...


class SpendingBudget:
    """The budget of a session and all its sub-agents. `cost_usd` is what the session has cost already; `day` holds the sum over
    all sessions."""

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
        self._reserved = Spend()  # the most that the calls under way can cost
        self._calls = _Calls()
        self._told: set[tuple[Scope, bool, float]] = set()
        self.reached: Limit | None = None
        """The limit for which a call of this turn was refused; None where none was."""

    def begin_turn(self, session: str) -> None:
        """Start the limit of a turn anew; a sub-agent's turn counts as a part of its caller's."""
        if session == self._session:
            self._spent["turn"] = Spend()
            self.reached = None

    def in_force(self) -> tuple[Limit, ...]:
        """The limits that are set, with what is spent of each; calls under way count with the most they can cost."""
        return self._in_force()

    def _in_force(self, reserved: Spend | None = None) -> tuple[Limit, ...]:
        """Like `in_force`, with `reserved` counted for the calls under way; None for the most they can cost."""
        pending = self._reserved if reserved is None else reserved
        spent: dict[Scope, Spend] = {s: self._spent.get(s, Spend()) + pending for s in self._SCOPES}
        return tuple(limits_in_force(self.limits, spent))

    def warnings(self) -> tuple[str, ...]:
        """A sentence for each limit that is nearly spent, only once for each."""
        sentences: list[str] = []
        for limit in limits_in_force(self.limits, self._spent):
            key = (limit.scope, limit.in_tokens, limit.most)
            if limit.spent >= limit.most * WARNING_SHARE and key not in self._told:
                self._told.add(key)
                sentences.append(f"{limit.words}.")
        return tuple(sentences)

    async def admit(
        self, model: ModelPort, request: ModelRequest, on_wait: OnWait | None = None
    ) -> tuple[ModelRequest, Spend]:
        """The request, with its reply shortened to fit the limits, and the most it can cost, which is reserved until `pay`.

        Where the request only does not fit because of what calls under way might cost, it waits for these without reserving
        anything: they mostly cost far less; `on_wait` is told so when the wait begins and when it has ended. Raises ModelError
        (`limit`) where not even a short reply fits."""
        prices, prompt = model.prices(), int(request.view.raw * MAX_COUNT_RATIO) + 1
        wanted = request.max_output or USUAL_OUTPUT_TOKENS
        waited = False
        while True:
            await self._look_at_day()
            room, passed = _longest_reply(self.in_force(), prices, prompt, wanted)
            if passed is None:
                break
            lasting = _longest_reply(self._in_force(Spend()), prices, prompt, wanted)[1]
            if lasting or not self._calls.under_way:
                self._refuse(lasting or passed)
            ended = self._calls.one_ended
            if on_wait and not waited:
                await on_wait(
                    f"Waits for a call to end, or this {passed.scope}'s {passed.amount(passed.most)} could be passed."
                )
            waited = True
            await ended.wait()
        reserved = dearest(prices, prompt, room)
        self._reserve(reserved)
        self._calls.begin()
        try:
            if on_wait and waited:
                await on_wait("Goes on.")
        except BaseException:
            self._settle(reserved, Spend())
            self._calls.end()
            raise
        return (request if room == wanted else msgspec.structs.replace(request, max_output=room)), reserved

    async def pay(self, reserved: Spend, usage: Usage | None, *, begun: bool) -> None:
        """Book an ended call by its `usage`. One that had `begun` and reports no usage is booked with all that was reserved."""
        paid = Spend(usage.cost_usd, usage.prompt + usage.completion) if usage else reserved if begun else Spend()
        try:
            await self._pay_day(paid)
        finally:
            self._settle(reserved, paid)
            self._calls.end()

    def _refuse(self, passed: Limit) -> NoReturn:
        """Raise the ModelError for a limit that a call could pass."""
        self.reached = passed
        raise ModelError(
            f"The limit is reached: {passed.words}, and this request could cost more than what is left. "
            "It was not made.",
            "[limits] in the settings raises it."
            if passed.scope == "task"
            else f"`/limit {passed.scope} …{' tokens' * passed.in_tokens}` raises it for this session, [limits] in the settings "
            "for good.",
            kind="limit",
        )

    async def _look_at_day(self) -> None:
        if self._day and self.limits.day:
            self._spent["day"] = Spend(await self._day.today())

    async def _pay_day(self, paid: Spend) -> None:
        if self._day and paid.usd:
            self._spent["day"] = Spend(await self._day.add(paid.usd))

    def _reserve(self, most: Spend) -> None:
        """Reserve the most that a call can cost."""
        self._reserved += most

    def _settle(self, reserved: Spend, paid: Spend) -> None:
        """Release what was reserved for a call, and book what it cost."""
        self._reserved = Spend(self._reserved.usd - reserved.usd, self._reserved.tokens - reserved.tokens)
        for scope in self._SCOPES:
            if scope != "day":
                self._spent[scope] = self._spent.get(scope, Spend()) + paid

    def raise_limit(self, scope: Scope, most: float, *, in_tokens: bool = False) -> None:
        """Set a limit in US dollars (or tokens) for the rest of this session; 0 for no limit."""
        changed = {f"{scope}_tokens": round(most)} if in_tokens else {scope: most}
        self.limits = msgspec.structs.replace(self.limits, **changed)


def _longest_reply(
    limits: Iterable[Limit], prices: ModelPrices | None, prompt: int, wanted: int
) -> tuple[int, Limit | None]:
    """Most tokens that a reply may have, up to `wanted`, for a prompt of `prompt` tokens; and the limit that leaves too few, or
    None."""
    room = wanted
    for limit in limits:
        most = longest_reply(limit, prices, prompt)
        if most is not None and most < min(MIN_OUTPUT, wanted):
            return most, limit
        room = room if most is None else min(room, most)
    return room, None


class _Calls:
    """Counts the calls under way of a session and all its sub-agents."""

    def __init__(self) -> None:
        self.under_way = 0
        self.one_ended = asyncio.Event()
        """Set when the next call ends; a new event then takes its place."""

    def begin(self) -> None:
        """Count a call that begins."""
        self.under_way += 1

    def end(self) -> None:
        """Count the end of a call, and wake those that wait for one."""
        self.under_way -= 1
        self.one_ended.set()
        self.one_ended = asyncio.Event()


class TaskBudget(SpendingBudget):
    """The budget of a sub-agent's task. All it spends counts for its caller's budget (`above`) too, which also gives warnings."""

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

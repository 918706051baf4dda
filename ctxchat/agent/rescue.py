"""The emergency ladder: a server refused a request as too long, so it is made smaller rung by rung and sent again.

Runs in every mode. Nothing is sent again unchanged, nobody who just refused is asked to summarise.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.passes import Order
from ctxchat.agent.planner import Planner
from ctxchat.core.errors import ModelError
from ctxchat.core.events import CompactionFinished, Event, Notice, Retry
from ctxchat.core.overflow import is_context_overflow, stated_window
from ctxchat.core.strategies.base import Plan

Perform = Callable[[Order], AsyncGenerator[Event, None]]


class Rescue:
    """The ladder for one request. Each rung is tried once."""

    def __init__(self, conversation: Conversation, planner: Planner, perform: Perform) -> None:
        self._talk = conversation
        self._planner = planner
        self._perform = perform
        self._calls = 1
        self._rungs = self._ladder()

    def recognises(self, problem: ModelError) -> bool:
        """True where the server says that the request does not fit its window."""
        used = self._talk.figures.used
        return is_context_overflow(problem, estimated_tokens=used, window=self._talk.budget.window.tokens)

    async def shrink(self, problem: ModelError) -> AsyncGenerator[Event, None]:
        """One rung that made the request smaller, told as a pass and a retry.

        Raises `problem` with the largest offenders when there is none left or there were enough calls.
        """
        talk = self._talk
        if self._calls >= talk.options.emergency_calls:
            raise self._given_up(problem)
        before = talk.figures
        believed = talk.budget.window.tokens
        learned = stated_window(problem)
        if learned and learned < believed:
            talk.learn_window(learned)
        elif before.used < believed:
            talk.learn_window(max(1024, int(before.used * 0.95)))
        await talk.refresh()
        for plan in self._rungs:
            freed = 0
            async with aclosing(self._perform(Order(plan, "context_overflow"))) as events:
                async for event in events:
                    yield event
                    if isinstance(event, CompactionFinished) and event.outcome == "compacted":
                        freed = event.before.used - event.after.used
            if freed > 0:
                self._calls += 1
                known = talk.budget.window.tokens
                text = f"The server refused {before.used:,} tokens; its window is {known:,}, not {believed:,}."
                yield Notice("warning", f"{text} Freed {freed:,}, sent again." if known < believed else text)
                yield Retry(self._calls - 1, 0.0, "the request was larger than the server's window")
                return
        raise self._given_up(problem)

    def _ladder(self) -> Iterator[Plan]:
        """Plans, each made when its turn comes, on the view as the ones before left it."""
        options = self._talk.options
        rungs: list[tuple[str, int, bool]] = [("shrink_tool_results", options.keep_recent, False)]
        keep = options.keep_recent
        while keep > options.emergency_floor:
            keep = max(options.emergency_floor, keep // 2)
            rungs.append(("truncate", keep, False))
        rungs += [("oversize", options.emergency_floor, True), ("sliding_window", 0, True)]
        for name, keep, clip_current in rungs:
            turns = 1 if name == "sliding_window" else None
            plan = self._planner.plan(name, keep_recent=keep, keep_turns=turns, clip_current=clip_current)
            if plan is not None:
                yield plan

    def _given_up(self, problem: ModelError) -> ModelError:
        """The original error, with what fills the window and what to do."""
        items = sorted(self._talk.view.items, key=lambda item: -item.tokens)[:3]
        biggest = ", ".join(
            f"{item.message.id if item.message.seq else item.section} {item.tokens:,}" for item in items
        )
        return ModelError(
            problem.text,
            f"It does not fit however much is put away. Largest: {biggest}. A larger window, or fewer tools, would help.",
            kind="overflow",
            status=problem.status,
            code=problem.code,
            body=problem.body,
        )

"""Makes a request smaller, step by step, after a server refused it as too long, so that it can be sent again.

Works in every mode. Nothing is sent again unchanged, and the model that refused is not asked for a summary.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from ctxchat.agent.compaction.planner import Planner
from ctxchat.agent.compaction.run import CompactionRequest
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.emitting import Emit, Work
from ctxchat.core.calibration import Mix
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Notice, Retry
from ctxchat.core.overflow import is_context_overflow, output_excess, stated_prompt, stated_window
from ctxchat.core.quantities import brief, short
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.core.strategies.base import Plan
from ctxchat.core.summaries import too_little

Perform = Callable[[CompactionRequest, Emit], Awaitable[CompactionRecord]]

ASSUMED_WINDOW_SHARE = 0.9
"""The window is assumed to be this share of the refused tokens, where the server does not name it."""

MIN_WINDOW_TOKENS = 1024
"""No window is assumed to be smaller than this."""

COUNT_ERROR_TOKENS = 64
"""Tokens by which a server's next count may be above what its last one lets expect."""

MIN_OUTPUT_TOKENS = 256
"""Least room for a reply: with less, the prompt must become shorter."""


class RecoveryStep(msgspec.Struct, frozen=True):
    """One way to make a request smaller, by a strategy without a model."""

    strategy: str
    keep_recent: int
    keep_turns: int | None = None
    clip_current: bool = False


class OverflowRecovery:
    """The recovery of one request. Each step is tried once. `output` is the room for the reply in tokens."""

    def __init__(self, conversation: Conversation, planner: Planner, perform: Perform) -> None:
        self._conversation = conversation
        self._planner = planner
        self._perform = perform
        self._calls = 1
        self._left = recovery_steps(conversation.options.keep_recent, conversation.options.emergency_floor)
        self.output = self._room_for_reply()

    def remedy(self, problem: ModelError) -> Work | None:
        """The work that makes the request fit, which emits a compaction and a retry; None where it was not refused as too long.

        The work raises `problem`, with what fills the window, when no step or no call is left.
        """
        conversation = self._conversation
        room = output_excess(problem, estimated_tokens=conversation.context_usage.used)
        if MIN_OUTPUT_TOKENS <= room < (self.output or conversation.window.tokens):
            return partial(self._shorter_reply, problem, room)
        if is_context_overflow(
            problem, estimated_tokens=conversation.context_usage.used, window=conversation.window.tokens
        ):
            return partial(self._shrink_request, problem)
        return None

    async def _shorter_reply(self, problem: ModelError, room: int, emit: Emit) -> None:
        """Allow a shorter reply this once, since the prompt itself fits; nothing is compacted."""
        self._count_call(problem)
        self.output = room
        self._refused_usage(problem)
        await emit(
            Notice("info", f"Prompt and reply together would not fit: this reply may have {short(room)} tokens.")
        )
        await emit(Retry(self._calls - 1, 0.0, "the output limit was too high for what the prompt leaves"))

    async def _shrink_request(self, problem: ModelError, emit: Emit) -> None:
        """Learn the window from the refusal, and make the request smaller by one step."""
        conversation = self._conversation
        self._count_call(problem)
        before, believed, raw = self._refused_usage(problem), conversation.window.tokens, conversation.view.raw
        stated = stated_window(problem)
        cautious = (
            max(MIN_WINDOW_TOKENS, int(before.used * ASSUMED_WINDOW_SHARE)) if before.used < believed else believed
        )
        if stated and (stated < believed or conversation.window.guessed):
            await conversation.knowledge.learn_window(stated)
        elif not stated and cautious < believed:
            await conversation.knowledge.learn_window(cautious, refused=before.used)
        await conversation.remeasure()
        refused = max(before.used, stated)  # the server's count may be far above ours
        goal = min(self._planner.raw_budget().limit, int(raw * conversation.budget.limit / max(1, refused)))
        record = await self._apply_step(goal, "context_overflow", emit)
        freed = record.before.used - record.after.used if record and record.outcome == "compacted" else 0
        if freed <= 0:
            raise self._final_error(problem)
        self.output = self._room_for_reply()
        known = conversation.window.tokens
        guess = conversation.window.refused
        held = f"at most {brief(guess)} (taken for {brief(known)})" if guess else brief(known)
        what = f"its window is {held}, not {brief(believed)}. " if known < believed else ""
        said = f"The server refused {short(before.used)} tokens; {what}Freed {short(freed)}, sent again."
        await emit(Notice("warning", said))
        await emit(Retry(self._calls - 1, 0.0, "the request was larger than the server's window"))

    def _refused_usage(self, problem: ModelError) -> ContextUsage:
        """The gauge of the refused request, by the server's count where it names it; that count is learned from, too."""
        conversation = self._conversation
        counted = conversation.knowledge.refused(stated_prompt(problem), conversation.view, conversation.clock.now())
        if counted:
            conversation.apply_now_write_later(counted)
        return conversation.streaming(Mix())

    async def make_fit(self, reason: Reason, emit: Emit) -> None:
        """Take one step before anything is sent, for a conversation that its window cannot hold."""
        await self._apply_step(self._planner.raw_budget().limit, reason, emit)

    async def _apply_step(self, goal: int, reason: Reason, emit: Emit) -> CompactionRecord | None:
        """Run the first step that comes down to `goal` raw tokens, else the one that frees most; None where none frees any."""
        best: tuple[Plan, RecoveryStep] | None = None
        for step in self._left:
            plan = await self._planner.plan(
                step.strategy, keep_recent=step.keep_recent, keep_turns=step.keep_turns, clip_current=step.clip_current
            )
            if plan is None or too_little(plan.before, plan.after) or (best and best[0].after <= plan.after):
                continue
            best = (plan, step)
            if plan.after <= goal:
                break
        if best is None:
            return None
        self._left = tuple(step for step in self._left if step != best[1])
        return await self._perform(CompactionRequest(best[0], reason), emit)

    def _room_for_reply(self) -> int:
        """The tokens that the prompt surely leaves in the window; in a window that is only assumed, at least what is reserved for
        a reply."""
        conversation, context_usage = self._conversation, self._conversation.context_usage
        left = conversation.window.tokens - round(context_usage.used * (1 + context_usage.band)) - COUNT_ERROR_TOKENS
        least = conversation.budget.reserved if conversation.window.source == "assumed" else MIN_OUTPUT_TOKENS
        return max(least, left)

    def _count_call(self, problem: ModelError) -> None:
        if self._calls >= self._conversation.options.emergency_calls:
            raise self._final_error(problem)
        self._calls += 1

    def _final_error(self, problem: ModelError) -> ModelError:
        """The original error, with what fills the window and what would help."""
        items = sorted(self._conversation.view.items, key=lambda item: -item.tokens)[:3]
        biggest = ", ".join(
            f"{item.message.id if item.message.seq else item.section} {short(item.tokens)}" for item in items
        )
        return ModelError(
            problem.text,
            f"It does not fit however much is archived. Largest: {biggest}. A larger window, or fewer tools, would help.",
            kind="overflow",
            status=problem.status,
            code=problem.code,
            body=problem.body,
        )


def recovery_steps(keep_recent: int, floor: int) -> tuple[RecoveryStep, ...]:
    """All steps, the gentlest first: results to lines; recaps, each keeping half as many messages as the one before; long
    messages to head and tail; at last the current turn alone."""
    steps = [RecoveryStep("shrink_tool_results", keep_recent)]
    keep = keep_recent
    while keep > floor:
        keep = max(floor, keep // 2)
        steps.append(RecoveryStep("truncate", keep))
    return (
        *steps,
        RecoveryStep("oversize", floor, clip_current=True),
        RecoveryStep("sliding_window", 0, 1, clip_current=True),
    )

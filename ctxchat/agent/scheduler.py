"""Which pass is due now, before a request or between the rounds of a turn, and with what strategy. Runs none."""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.agent.consent import Consent
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.passes import PassRequest
from ctxchat.agent.planner import Planner
from ctxchat.core.events import CompactionSuggested, Notice
from ctxchat.core.figures import Due, Figures, due, overhead
from ctxchat.core.record import Reason
from ctxchat.core.strategies.base import Plan
from ctxchat.core.summaries import too_little


class Scheduler:
    """Passes that start by themselves, for one conversation."""

    def __init__(self, conversation: Conversation, planner: Planner, consent: Consent) -> None:
        self._conversation = conversation
        self._planner = planner
        self._consent = consent
        self._inside = (0, 0)  # the turn, and how many passes there were inside it
        self._window_before = 0  # of the last request, once another model is to have the next one

    def switched(self) -> None:
        """Another model than that of the last request is to have the next one; said before the gauge is measured for it."""
        self._window_before = self._window_before or self._conversation.figures.window

    def room_made(self) -> None:
        """Room was made for the model in force: what comes now is no longer due to a switch."""
        self._window_before = 0

    def reason(self, otherwise: Reason) -> Reason:
        """Why a pass is made now: for a model with a smaller window than the one of the last request, else `otherwise`."""
        return "model_switch" if self._conversation.figures.window < self._window_before else otherwise

    def standing(self, figures: Figures, rounds: int) -> Due:
        """What is due: between two rounds the marks for that decide, since a turn is not to be interrupted for less."""
        options = self._conversation.options
        standing = due(figures, options.soft_mark)
        if not rounds or standing == "overhead":
            return standing
        if figures.pressure >= options.micro_trigger:
            return "compact"
        return "prepare" if standing == "compact" else standing

    async def order(self, figures: Figures, rounds: int) -> PassRequest | None:
        """The pass that is due now, None where nothing may or can be done."""
        options = self._conversation.options
        if self._conversation.automatic.few or not self._consent.may_start(figures, inside=bool(rounds)):
            return None
        if self._conversation.by_hook and not rounds:
            return None
        name, reason = self._inside_turn(figures) if rounds else (options.strategy, "auto")
        if not rounds:
            plan = await self._planner.usual(name)
        else:  # in an emergency nobody is asked
            by_model = self._consent.standing == "free" and reason != "context_overflow"
            plan = await self._worth_it(name, "oversize", by_model=by_model) if name else None
        return PassRequest(plan, self.reason(reason)) if plan else None

    async def _worth_it(self, *names: str, by_model: bool) -> Plan | None:
        """The first of these strategies that frees enough. Where recaps do not, what fills the window stands in the newest
        rounds: too long a text, or a call's arguments."""
        for name in names:
            plan = await self._planner.plan(name, by_model=by_model)
            if plan is not None and not too_little(plan.before, plan.after):
                return plan
        return None

    def _inside_turn(self, figures: Figures) -> tuple[str, Reason]:
        """Strategy and reason between two rounds; no strategy where there were enough passes, or none are wanted."""
        options, turn = self._conversation.options, self._conversation.ledger.turn
        passes = self._inside[1] if self._inside[0] == turn else 0
        full = figures.pressure >= options.full_trigger
        if passes >= options.reactive_per_turn:  # but a request that cannot fit must not go out
            perhaps_over = figures.used * (1 + figures.band) > figures.limit
            return ("reactive_full" if perhaps_over else "", "context_overflow")
        self._inside = (turn, passes + 1)
        return ("reactive_full", "reactive_full") if full else ("reactive_micro", "reactive_micro")

    async def suggestion(self, figures: Figures) -> CompactionSuggested | None:
        """A question to the person, where they want to be asked and a pass would help."""
        if due(figures) != "compact" or self._conversation.automatic.few or not self._consent.may_ask(figures):
            return None
        plan = await self._planner.usual()
        if plan is None or not self._consent.once_a_turn():
            return None
        return CompactionSuggested(figures.used, figures.limit, figures.pressure, self._planner.after_used(plan))

    def about_trigger(self, figures: Figures, rounds: int) -> Sequence[Notice]:
        """What is said where the trigger is reached and nothing is done by itself."""
        return self._consent.about_trigger(figures, inside=bool(rounds)) if due(figures) == "compact" else ()

    def too_long(self) -> bool:
        """The conversation is longer than the whole window of a model whose window is known: in every mode it must be cut."""
        figures = self._conversation.figures
        if figures.window_source == "assumed" or overhead(figures) >= figures.trigger_tokens:
            return False
        return figures.used > figures.window

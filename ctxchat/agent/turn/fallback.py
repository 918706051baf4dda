"""Who answers when the model in force fails for good: its fallback, then that one's own, each once in a turn.

The fallback answers for the rest of the turn. The next message asks the chosen model first again, once and without waiting:
it comes back by itself, and an outage costs one refused request a message instead of a series.
"""

from __future__ import annotations

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.model_knowledge import ModelKnowledge
from ctxchat.agent.setup import Setup
from ctxchat.core.errors import CtxchatError, ModelError
from ctxchat.core.ports import ModelPort

FOR_GOOD = frozenset(
    {"rate_limit", "quota", "auth", "settings", "not_found", "timeout", "connection", "server", "worker"}
)
"""What another model may not suffer from; a refusal of what was said, or of its length, is not among them."""


class Fallback:
    """The fallbacks of one session."""

    def __init__(self, conversation: Conversation, setup: Setup) -> None:
        self._conversation = conversation
        self._setup = setup
        self._away: ModelKnowledge | None = None  # what is known of the chosen model, while another answers for it
        self._failed: set[str] = set()  # in this turn

    @property
    def retries(self) -> int:
        """How often a call to the model in force may be tried again."""
        return 0 if self._conversation.model.name in self._setup.doubted else self._conversation.options.retries

    def in_vain(self, problem: ModelError) -> bool:
        """Trying again is not worth the wait: it said nothing for as long as anybody waits, and another one stands by."""
        return problem.kind == "timeout" and self._next(problem) is not None

    def answered(self) -> None:
        """The model in force has replied."""
        self._setup.doubted.discard(self._conversation.model.name)

    async def step_in(self, problem: ModelError) -> str:
        """Put the next fallback in force; a sentence for the person, or empty where there is none or it would not help.

        Raises `problem`, with what is wrong in its hint, where the fallback cannot be had.
        """
        conversation = self._conversation
        failing = conversation.model
        if problem.kind not in FOR_GOOD:
            return ""
        self._failed.add(failing.name)
        model = self._next(problem)
        if model is None:
            return ""
        if self._away is None:
            self._away = conversation.knowledge
        self._setup.fallback_answers = True
        self._setup.doubted.add(failing.name)
        self._setup.use(await conversation.learned_of(model))
        next_time = f"your next message asks {self._away.model.name} first again."
        return f"{failing.name}: {_sentence(problem)} {model.name} answers this turn; {next_time}"

    def step_back(self) -> bool:
        """The turn is over: the chosen model is in force again. False where it was all the time."""
        self._failed.clear()
        if self._away is None:
            return False
        knowledge, self._away = self._away, None
        self._setup.fallback_answers = False
        self._setup.use(knowledge)
        self._conversation.remeasured()
        return True

    def _next(self, problem: ModelError) -> ModelPort | None:
        """The fallback of the model in force, unless it has failed in this turn. Raises as `step_in`."""
        try:
            model = self._setup.fallback()
        except CtxchatError as trouble:
            problem.hint = f"{problem.hint} Its fallback cannot be had: {trouble}".strip()
            raise problem from trouble
        return None if model is None or model.name in self._failed else model


def _sentence(problem: ModelError) -> str:
    """What happened, with the remedy where it will not pass by itself."""
    text = problem.text if problem.text[-1:] in ".!?…" else f"{problem.text}."
    return text if problem.transient or not problem.hint else f"{text} {problem.hint}"

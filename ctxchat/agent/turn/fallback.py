"""Puts a fallback model in force when the present one fails for good: its fallback, then the fallback's own, each once a turn.

The fallback answers for the rest of the turn. The next message asks the chosen model first again, once and without retries: so
the session returns to it by itself, and an outage costs each message one refused request instead of a series.
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
"""Kinds of failure that another model may not have. A refusal of a message's content, or of its length, is not among them."""


class Fallback:
    """The fallbacks of one session."""

    def __init__(self, conversation: Conversation, setup: Setup) -> None:
        self._conversation = conversation
        self._setup = setup
        self._away: ModelKnowledge | None = None  # knowledge of the chosen model, while a fallback answers
        self._failed: set[str] = set()  # names of models that failed in this turn

    @property
    def retries(self) -> int:
        """How often a call to the present model may be retried."""
        return 0 if self._conversation.model.name in self._setup.doubted else self._conversation.options.retries

    def in_vain(self, problem: ModelError) -> bool:
        """Whether a retry is not worth the wait: the model timed out, and a fallback is available."""
        return problem.kind == "timeout" and self._next(problem) is not None

    def answered(self) -> None:
        """Note that the present model has replied: its calls may be retried again."""
        self._setup.doubted.discard(self._conversation.model.name)

    async def step_in(self, problem: ModelError) -> str:
        """Put the next fallback in force. Returns a sentence for the person, empty where there is none or it would not help.

        Raises `problem`, with the reason added to its hint, where the fallback cannot be opened.
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
        """At the end of a turn: put the chosen model in force again. False where no fallback had replaced it."""
        self._failed.clear()
        if self._away is None:
            return False
        knowledge, self._away = self._away, None
        self._setup.fallback_answers = False
        self._setup.use(knowledge)
        self._conversation.remeasured()
        return True

    def _next(self, problem: ModelError) -> ModelPort | None:
        """The fallback of the present model, unless it has failed in this turn. Raises like `step_in`."""
        try:
            model = self._setup.fallback()
        except CtxchatError as trouble:
            problem.hint = f"{problem.hint} Its fallback cannot be had: {trouble}".strip()
            raise problem from trouble
        return None if model is None or model.name in self._failed else model


def _sentence(problem: ModelError) -> str:
    """The error as a sentence, with its hint unless the error is transient."""
    text = problem.text if problem.text[-1:] in ".!?…" else f"{problem.text}."
    return text if problem.transient or not problem.hint else f"{text} {problem.hint}"

"""What is known of the model in use: the window it really has, and how its server's counts compare with ours.

Taught by replies and refusals, kept in the session's journal and, for other sessions, by `ModelKnowledgeStore`. Knows no turn.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from ctxchat.agent.journal_writer import JournalWriter
from ctxchat.core.budget import Window
from ctxchat.core.calibration import MAX_RATE, Anchor, Calibration, Mix, most_tokens
from ctxchat.core.context_usage import parts_of, used_tokens
from ctxchat.core.events import Usage
from ctxchat.core.journal import Measured, WindowLearned
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.ports import ModelPort
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import View

MIN_JUMP_TOKENS = 500
"""Tokens between two counts of one server that what was said in between cannot explain."""


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one model: the window that was learned (None for none), how its counts compare with ours, and `filled`,
    what its summaries took of what they might, as a share (0 where none was seen)."""

    window: WindowLearned | None = None
    calibration: Calibration = Calibration()
    filled: float = 0.0


def corrected(claimed: Window, knowledge: WindowLearned | None) -> Window:
    """The window a model says it has, unless what happened has corrected just that: downwards whatever it is, upwards what was
    only assumed."""
    if not knowledge or not knowledge.tokens or knowledge.believed not in {0, claimed.tokens}:
        return claimed
    if (knowledge.tokens > claimed.tokens and not claimed.guessed) or knowledge.tokens == claimed.tokens:
        return claimed
    return Window(knowledge.tokens, "assumed" if knowledge.took else "learned", claimed.tokens, knowledge.refused)


class ModelKnowledgeStore(Protocol):
    """Keeps what is known by model name. Neither verb raises: losing it costs an estimate its precision and nothing else."""

    def load(self, model: str) -> Known:
        """What is known. Blocking: it may wait for the store."""
        ...

    async def save(self, model: str, known: Known) -> None:
        """Keep it in place of what was known."""
        ...


class NothingKnown:
    """For programs that keep nothing."""

    def load(self, model: str) -> Known:
        """Nothing."""
        return Known()

    async def save(self, model: str, known: Known) -> None:
        """It is forgotten."""


class ModelKnowledge:
    """The lessons about one model; `known` are those of earlier sessions. `claimed` is the window it says it has, None until it
    was asked."""

    def __init__(
        self, journal: JournalWriter, knowledge_store: ModelKnowledgeStore, model: ModelPort, known: Known
    ) -> None:
        self._journal = journal
        self._knowledge_store = knowledge_store
        self._known = known
        self.model = model
        self._stated = model.stated()
        self.counter = TokenCounter(model.count, model.count_image)
        self.claimed: Window | None = None
        self._sampled = Calibration()
        self._doubted = False
        self._answered = self._ask_again = self._told = False

    async def asked(self) -> tuple[Window, Calibration]:
        """What the model says of itself: its window, and how its server counts. It is asked once, and again after its first reply
        where it did not know its window before: Ollama has loaded the model by then. See `apply`."""
        if self.claimed and not self._ask_again:
            return self.claimed, self._sampled
        return await asyncio.gather(self.model.window(), self.model.sampled())

    def apply(self, window: Window, sampled: Calibration) -> None:
        """Go by what the model has said. With its window it may have learned whether it is shown images."""
        if self.claimed is None:
            self.counter.forget_images()
        self.claimed, self._sampled, self._ask_again = window, sampled, False

    @property
    def calibration(self) -> Calibration:
        """How this model's counts compare with ours: from this session's replies, or earlier ones', or from samples."""
        knowledge = self._journal.state.calibrations.get(self.model.name, self._known.calibration)
        return knowledge if knowledge.samples else self._sampled

    @property
    def anchor(self) -> Anchor | None:
        """The newest count of this model's server, None where another model's is newer."""
        return self._own(self._journal.state.anchor)

    def counted_of(self, ledger: Ledger) -> Anchor | None:
        """What this model's server counted of the view of such a ledger, when it was there before."""
        return self._own(self._journal.state.counted_of(ledger))

    def _own(self, anchor: Anchor | None) -> Anchor | None:
        return anchor if anchor and anchor.model in {"", self.model.name} else None

    def off(self, used: int) -> float:
        """Tokens by which a total that a session closed with may be off: none where it stood on this server's own count."""
        return 0.0 if self.anchor else self.calibration.error(Mix(used), whole=True)

    @property
    def window(self) -> Window:
        """What the model says it can hold, unless a rejection has corrected just that."""
        claimed, knowledge = self.claimed or self._stated, self._window_learned
        if self.claimed is None and claimed.guessed and knowledge and knowledge.tokens:
            source = "assumed" if knowledge.took else "learned"
            return Window(knowledge.tokens, source, knowledge.believed, knowledge.refused)  # until its server is asked
        return corrected(claimed, knowledge)

    def unknown(self) -> str:
        """Once: a sentence where nobody has said how much the model can hold, and nothing has shown it; else nothing."""
        window = self.window
        if self._told or self._ask_again or not self.claimed or window.source != "assumed" or window.claimed:
            return ""
        self._told = True
        return (
            f"Nobody says how much {self.model.name} can hold: {window.tokens:,} tokens are assumed, and room is made by that. "
            f'Set `window` for it ([models."{self.model.name}"]), or start with --window.'
        )

    @property
    def _window_learned(self) -> WindowLearned | None:
        return self._journal.state.windows.get(self.model.name, self._known.window)

    # ── from replies ──

    def prompt_tokens(self, view: View) -> int:
        """What the server should count for this view."""
        return used_tokens(view.kinds, view.changes, self.calibration, self.anchor, self._journal.state.scale)[0]

    def weight(self, reply: Message) -> Mix:
        """Our count of a reply as the next request holds it."""
        if reply.reasoning and not self.model.keeps_reasoning:
            reply = msgspec.structs.replace(reply, reasoning=None)
        return self.counter.mix(reply)

    def cut(self, usage: Usage, view: View) -> int:
        """Tokens a server seems to have cut from this view in silence, 0 when it did not.

        A first estimate may be far off by itself, so less is made of it.
        """
        missing = self._expected(view) - usage.prompt
        return missing if missing > 1000 and self._doubtful(usage, view) else 0

    def _expected(self, view: View) -> int:
        """Tokens a server counts at least, if it counts all: what was learned of it may be wrong, our own count may not."""
        return min(self.prompt_tokens(view), view.raw)

    def _doubtful(self, usage: Usage, view: View) -> bool:
        share = 0.6 if self.calibration.samples else 0.4
        return not usage.estimated and usage.prompt < share * self._expected(view)

    def counted(self, usage: Usage, view: View, reply: Message, at: str, *, turn_end: bool) -> Measured:
        """The journal entry for a reply to this view: what the server counted becomes the gauge's anchor.

        A prompt the server seems to have cut, or figures that are not its own, teach nothing; nor does one that its last count
        makes impossible, unless the next says the same. Where it does not say how much
        of a reply will be sent again, the anchor is the prompt alone, and the reply our own estimate.
        """
        if not self._answered and self.claimed:
            self._answered = True
            self._ask_again = bool(self.model.address) and self.claimed.source == "assumed"
        calibration, anchor, cut = self.calibration, self.anchor, self.cut(usage, view)
        said = self.weight(reply)
        jumps = not usage.estimated and self._jumps(usage.prompt, view)
        doubted, self._doubted = jumps and not self._doubted, jumps and not self._doubted
        if not usage.estimated and not doubted and not self._doubtful(usage, view):
            kept = self._kept_tokens(usage, reply)
            if 0.5 < kept / max(1, calibration.part(said)) < 2 and not reply.reasoning and not reply.calls:
                calibration = calibration.learn(kept, said, whole=False)  # what was counted is what was said
            calibration = self._taught(calibration, usage.prompt, view)
            mix = view.kinds + said if kept else view.kinds
            anchor = Anchor(usage.prompt + kept, mix, view.changes, self.model.name)
        used, _ = used_tokens(view.kinds + said, view.changes, calibration, anchor, self._journal.state.scale)
        parts = parts_of(view, used, calibration, streamed=said)
        shown: dict[str, int] = {name: tokens for name, tokens in parts.items() if tokens}
        return Measured(self.model.name, usage, used, anchor, calibration, at, turn_end, cut, shown)

    def _taught(self, calibration: Calibration, real: int, view: View) -> Calibration:
        """After a server counted this view: what was added since its last count teaches more than the whole."""
        anchor = self.anchor
        if anchor is None or anchor.passes != view.changes:
            return calibration.learn(real, view.kinds)
        if self._jumps(real, view):
            return calibration.learn(real, view.kinds)  # the anchor was wrong
        return calibration.learn(real - anchor.tokens, view.kinds - anchor.mix, whole=False)

    def _jumps(self, real: int, view: View) -> bool:
        """What came since the server's last count cannot explain this one."""
        anchor = self.anchor
        if anchor is None or anchor.passes != view.changes:
            return False
        grown = view.kinds - anchor.mix
        unexplained = real - anchor.tokens - self.calibration.part(grown)
        return abs(unexplained) > MAX_RATE * abs(grown.raw) + MIN_JUMP_TOKENS

    def _kept_tokens(self, usage: Usage, reply: Message) -> int:
        """Tokens of a reply that the next request holds, as its server counted them; 0 where that is not known."""
        if self.model.keeps_reasoning:
            return usage.completion
        thought = reply.reasoning is not None and bool(reply.reasoning.text)
        kept = 0 if thought and not usage.reasoning else max(0, usage.completion - usage.reasoning)
        silent = kept > most_tokens(self.weight(reply).raw)  # it thought more than it shows, and does not say how much
        return 0 if silent else kept

    async def unlearn_window(self, usage: Usage) -> None:
        """A server that took more than its learned or assumed window holds that much at least; one that took a fifth more than
        was learned was misunderstood."""
        window, taken = self.window, usage.prompt + usage.completion
        if usage.estimated or taken <= window.tokens:
            return
        if window.guessed:
            await self.learn_window(taken, took=True)
        elif window.source == "learned" and taken < window.tokens * 1.2:
            await self.learn_window(taken, refused=window.refused if taken < window.refused else 0)
        elif window.source == "learned":
            await self.learn_window(0)

    # ── from refusals ──

    def refused(self, prompt: int, view: View, at: str) -> Measured | None:
        """The journal entry for a refusal that states what the server counted for this view: as good a count as a reply's.
        None where it states none, or one that cannot be of this view."""
        if not 0.25 < prompt / max(1, self.prompt_tokens(view)) < 4:
            return None
        calibration = self._taught(self.calibration, prompt, view)
        anchor = Anchor(prompt, view.kinds, view.changes, self.model.name)
        return Measured(self.model.name, Usage(prompt, 0), prompt, anchor, calibration, at)

    async def learn_window(self, tokens: int, *, refused: int = 0, took: bool = False) -> None:
        """What the server did shows what this claim is worth: from now on it is `tokens`, as in `WindowLearned`. 0: it is not so
        after all."""
        believed = self.claimed.tokens if self.claimed else 0
        self._journal.apply_now_write_later(WindowLearned(self.model.name, tokens, believed, refused, took))
        await self.remember()

    async def remember(self) -> None:
        """Keep what was learned of this model for other sessions."""
        window = self._window_learned
        await self._keep(Known(window if window and window.tokens else None, self.calibration, self._known.filled))

    async def _keep(self, known: Known) -> None:
        if known != self._known:
            self._known = known
            await self._knowledge_store.save(self.model.name, known)

    # ── from summaries ──

    def filled(self, writer: str) -> float:
        """What the summaries of a model took of what they might, in any session; 0 where none was seen. Blocking: of another
        model than this it may have to be read."""
        return self._known_of(writer).filled

    async def wrote(self, writer: str, filled: float) -> None:
        """A model has written a summary, which took such a share of what it might."""
        known = await asyncio.to_thread(self._known_of, writer)
        new = msgspec.structs.replace(known, filled=round((known.filled + filled) / 2 if known.filled else filled, 3))
        await (self._keep(new) if writer == self.model.name else self._knowledge_store.save(writer, new))

    def _known_of(self, model: str) -> Known:
        return self._known if model == self.model.name else self._knowledge_store.load(model)

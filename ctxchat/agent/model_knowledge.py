"""Holds what is known about the model in use: its real context window, and how its server's token counts compare with ours (the
calibration). The newest count of a request by the server is the gauge's anchor: only what was added since is estimated.

Learned from replies and refusals; kept in the session's journal and, for other sessions, by a `ModelKnowledgeStore`. Knows no
turn.
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
"""The most tokens by which two counts of a server may differ beyond what was added between them."""


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about one model: the `window` that was learned (None for none), the `calibration`, and `filled`, the share of
    the allowed length that its summaries took (0 where none was seen)."""

    window: WindowLearned | None = None
    calibration: Calibration = Calibration()
    filled: float = 0.0


def corrected(claimed: Window, knowledge: WindowLearned | None) -> Window:
    """The window that a model claims, corrected by what was learned: downwards always, upwards only where the claim was a guess.
    What was learned when another window was claimed does not count."""
    if not knowledge or not knowledge.tokens or knowledge.believed not in {0, claimed.tokens}:
        return claimed
    if (knowledge.tokens > claimed.tokens and not claimed.guessed) or knowledge.tokens == claimed.tokens:
        return claimed
    return Window(knowledge.tokens, "assumed" if knowledge.took else "learned", claimed.tokens, knowledge.refused)


class ModelKnowledgeStore(Protocol):
    """Stores what is known, by model name. Neither method raises: a loss only makes estimates less precise."""

    def load(self, model: str) -> Known:
        """What is known about a model. Blocking: may wait for the store."""
        ...

    async def save(self, model: str, known: Known) -> None:
        """Replace what was known about a model."""
        ...


class NothingKnown:
    """A store that keeps nothing."""

    def load(self, model: str) -> Known:
        """What is known without a store."""
        return Known()

    async def save(self, model: str, known: Known) -> None:
        """Do nothing."""


class ModelKnowledge:
    """What was learned about one model in this session, on top of `known` from earlier ones. `claimed` is the window that the
    model claims, None until it was asked."""

    def __init__(
        self, journal: JournalWriter, knowledge_store: ModelKnowledgeStore, model: ModelPort, known: Known
    ) -> None:
        self._journal = journal
        self._knowledge_store = knowledge_store
        self._known = known
        self.model = model
        self._stated = model.stated()
        self.counter = TokenCounter(model.count, model.count_image, model.takes_back)
        self.claimed: Window | None = None
        self._sampled = Calibration()
        self._doubted = False  # the last count seemed impossible, and must be confirmed by the next one
        self._answered = False  # a reply has come in this session
        self._ask_again = False  # the window is to be asked for once more
        self._told = False  # `unknown` has given its sentence

    async def asked(self) -> tuple[Window, Calibration]:
        """Ask the model for its window and for samples of how its server counts: once, and again after its first reply where the
        window was unknown before, since Ollama has loaded the model by then. `apply` uses the answer."""
        if self.claimed and not self._ask_again:
            return self.claimed, self._sampled
        return await asyncio.gather(self.model.window(), self.model.sampled())

    def apply(self, window: Window, sampled: Calibration) -> None:
        """Use the answer of `asked`. Images are counted anew: with its window the model may have said whether it takes them."""
        if self.claimed is None:
            self.counter.forget_images()
        self.claimed, self._sampled, self._ask_again = window, sampled, False

    @property
    def calibration(self) -> Calibration:
        """How this model's counts compare with ours: by the replies of this session, or of earlier ones, or by samples."""
        knowledge = self._journal.state.calibrations.get(self.model.name, self._known.calibration)
        return knowledge if knowledge.samples else self._sampled

    @property
    def anchor(self) -> Anchor | None:
        """The newest count by this model's server; None where one by another model's is newer."""
        return self._own(self._journal.state.anchor)

    def counted_of(self, ledger: Ledger) -> Anchor | None:
        """The count that this model's server made of the view of an equal ledger before; None without one."""
        return self._own(self._journal.state.counted_of(ledger))

    def _own(self, anchor: Anchor | None) -> Anchor | None:
        """The anchor, where it was counted by this model's server; else None."""
        return anchor if anchor and anchor.model in {"", self.model.name} else None

    def off(self, used: int) -> float:
        """Tokens by which the total that a session closed with may be wrong: 0 where it is this server's own count."""
        return 0.0 if self.anchor else self.calibration.error(Mix(used), whole=True)

    @property
    def window(self) -> Window:
        """The window: what the model claims, corrected by refusals and replies."""
        claimed, knowledge = self.claimed or self._stated, self._window_learned
        if self.claimed is None and claimed.guessed and knowledge and knowledge.tokens:
            source = "assumed" if knowledge.took else "learned"
            return Window(knowledge.tokens, source, knowledge.believed, knowledge.refused)  # until its server is asked
        return corrected(claimed, knowledge)

    def unknown(self) -> str:
        """A sentence for the person where the window is only assumed: no source states it, and no reply has shown it. Empty
        otherwise, and from the second time on."""
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
        """What was learned about the window, in this session or before; None for nothing."""
        return self._journal.state.windows.get(self.model.name, self._known.window)

    # ── from replies ──

    def prompt_tokens(self, view: View) -> int:
        """The number of tokens that the server is expected to count for this view."""
        return used_tokens(view.kinds, view.changes, self.calibration, self.anchor, self._journal.state.scale)[0]

    def weight(self, reply: Message) -> Mix:
        """Our count of a reply as a part of the next request, which may leave its reasoning out."""
        if reply.reasoning and not self.model.keeps_reasoning:
            reply = msgspec.structs.replace(reply, reasoning=None)
        return self.counter.mix(reply)

    def cut(self, usage: Usage, view: View) -> int:
        """The tokens that the server seems to have silently cut from this view; 0 for none. Before the first count a larger
        difference is tolerated, since our estimate may be far off."""
        missing = self._expected(view) - usage.prompt
        return missing if missing > 1000 and self._doubtful(usage, view) else 0

    def _expected(self, view: View) -> int:
        """The lowest count to be expected from a server that cuts nothing: the lower of the estimate and our raw count, since
        what was learned may be wrong."""
        return min(self.prompt_tokens(view), view.raw)

    def _doubtful(self, usage: Usage, view: View) -> bool:
        """True where the server's count is so much lower than expected that it must have cut the prompt."""
        share = 0.6 if self.calibration.samples else 0.4
        return not usage.estimated and usage.prompt < share * self._expected(view)

    def counted(self, usage: Usage, view: View, reply: Message, at: str, *, turn_end: bool) -> Measured:
        """The journal entry for a reply to this view: what the server counted becomes the gauge's anchor.

        Nothing is learned from a prompt that the server seems to have cut, from figures that are not its own, and from a count
        that its last one makes impossible, unless the next one confirms it. Where the server does not say how much of a reply is
        sent again, the anchor is the prompt alone, and the reply is estimated.
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
                calibration = calibration.learn(kept, said, whole=False)  # the whole reply was counted, nothing besides
            calibration = self._taught(calibration, usage.prompt, view)
            mix = view.kinds + said if kept else view.kinds
            anchor = Anchor(usage.prompt + kept, mix, view.changes, self.model.name)
        used, _ = used_tokens(view.kinds + said, view.changes, calibration, anchor, self._journal.state.scale)
        parts = parts_of(view, used, calibration, streamed=said)
        shown: dict[str, int] = {name: tokens for name, tokens in parts.items() if tokens}
        return Measured(self.model.name, usage, used, anchor, calibration, at, turn_end, cut, shown)

    def _taught(self, calibration: Calibration, real: int, view: View) -> Calibration:
        """The calibration after a server counted this view; learned from what was added since its last count, where there is
        one."""
        anchor = self.anchor
        if anchor is None or anchor.passes != view.changes:
            return calibration.learn(real, view.kinds)
        if self._jumps(real, view):
            return calibration.learn(real, view.kinds)  # the anchor was wrong
        return calibration.learn(real - anchor.tokens, view.kinds - anchor.mix, whole=False)

    def _jumps(self, real: int, view: View) -> bool:
        """Whether what was added since the server's last count cannot explain this one."""
        anchor = self.anchor
        if anchor is None or anchor.passes != view.changes:
            return False
        grown = view.kinds - anchor.mix
        unexplained = real - anchor.tokens - self.calibration.part(grown)
        return abs(unexplained) > MAX_RATE * abs(grown.raw) + MIN_JUMP_TOKENS

    def _kept_tokens(self, usage: Usage, reply: Message) -> int:
        """Tokens of a reply that stand in the next request, by the server's count; 0 where that is unknown."""
        if self.model.keeps_reasoning:
            return usage.completion
        thought = reply.reasoning is not None and bool(reply.reasoning.text)
        kept = 0 if thought and not usage.reasoning else max(0, usage.completion - usage.reasoning)
        silent = kept > most_tokens(
            self.weight(reply).raw
        )  # hidden reasoning is counted in, and the server does not say how much
        return 0 if silent else kept

    async def unlearn_window(self, usage: Usage) -> None:
        """Correct the window upwards after a server took more than a learned or assumed one. Where it took a fifth more than the
        learned one, that is forgotten: it was a misunderstanding."""
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
        """The journal entry for a refusal that names the server's count of this view, which is as good as a reply's. None where
        it names none, or one that cannot be of this view."""
        if not 0.25 < prompt / max(1, self.prompt_tokens(view)) < 4:
            return None
        calibration = self._taught(self.calibration, prompt, view)
        anchor = Anchor(prompt, view.kinds, view.changes, self.model.name)
        return Measured(self.model.name, Usage(prompt, 0), prompt, anchor, calibration, at)

    async def learn_window(self, tokens: int, *, refused: int = 0, took: bool = False) -> None:
        """Record the window that the server's behaviour shows, in `tokens` (arguments as in `WindowLearned`); 0 forgets what was
        learned."""
        believed = self.claimed.tokens if self.claimed else 0
        self._journal.apply_now_write_later(WindowLearned(self.model.name, tokens, believed, refused, took))
        await self.remember()

    async def remember(self) -> None:
        """Store what was learned about this model for other sessions."""
        window = self._window_learned
        await self._keep(Known(window if window and window.tokens else None, self.calibration, self._known.filled))

    async def _keep(self, known: Known) -> None:
        """Store this for other sessions, where it is new."""
        if known != self._known:
            self._known = known
            await self._knowledge_store.save(self.model.name, known)

    # ── from summaries ──

    def filled(self, writer: str) -> float:
        """The share of their room that the summaries of a model took, over all sessions; 0 where none was seen. Blocking: for
        another model the store is read."""
        return self._known_of(writer).filled

    async def wrote(self, writer: str, filled: float) -> None:
        """Learn from a summary of a model that took this share of its room."""
        known = await asyncio.to_thread(self._known_of, writer)
        new = msgspec.structs.replace(known, filled=round((known.filled + filled) / 2 if known.filled else filled, 3))
        await (self._keep(new) if writer == self.model.name else self._knowledge_store.save(writer, new))

    def _known_of(self, model: str) -> Known:
        """What is known about a model."""
        return self._known if model == self.model.name else self._knowledge_store.load(model)

"""The built-in assistant as a model like any other: one pure function, `decide`, and the thin edge that streams what it says,
counts and can be cancelled.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import msgspec

from ctxchat.core.budget import Window
from ctxchat.core.cache import CacheRules
from ctxchat.core.calibration import Calibration, level
from ctxchat.core.errors import ModelError
from ctxchat.core.events import ReasoningDelta, TextDelta, Usage
from ctxchat.core.expressions import expression
from ctxchat.core.messages import Message
from ctxchat.core.ports import CallPiece, ModelPiece, ModelRequest, ReplyEnd
from ctxchat.core.quantities import short
from ctxchat.core.tokens import Count, TokenCounter, rough_count
from ctxchat.core.view import View
from ctxchat.models.offline import OFFLINE_NAME, OFFLINE_WINDOW, phrases
from ctxchat.models.offline.commands import carry_out, command
from ctxchat.models.offline.research import research
from ctxchat.models.offline.transcript import Reply, read_view

PIECE_CHARS = 12
"""Characters of a piece of an answer, or more where that would be over `MAX_PIECES`."""

MAX_PIECES = 150

_TALK = tuple(
    (expression(pattern, re.I | re.X), said)
    for pattern, said in (
        (
            r"\b(?:who|what)\ (?:are|r)\ you\b | \byour\ name\b | \bare\ you\ (?:a|an|the|chatgpt|gpt|claude|real|human)\b",
            phrases.WHO,
        ),
        (r"^\W*(?:help | what\ can\ you\ do | how\ do\ (?:i|you)\ (?:use|work\ with)\ (?:you|this))\W*$", phrases.HELP),
        (
            r"""\bfills?\ (?:up\ )?(?:the|my|this)\ (?:context\ )?window\b
            | \bhow\ (?:full|big|large)\ is\ (?:the|my|this)\ (?:context|window)
            | \b(?:what(?:'s|\ is)\ in|what\ takes\ up)\ (?:the|my)\ context\b | \bhow\ many\ tokens\b.*\b(?:left|used|free)\b""",
            phrases.WINDOW,
        ),
        (r"^\W*(?:hi|hello|hey|good\ (?:morning|evening|day|afternoon))(?:\ there)?\W*$", phrases.GREETING),
        (
            r"""^\W*(?:thanks?(?:\ you)?(?:\ (?:a\ lot|very\ much|so\ much))? | thx | ok(?:ay)? | great | good | perfect | fine
            | got\ it)\W*$""",
            phrases.THANKS,
        ),
    )
)
_TOLD = expression(
    r"""^(?:(?:always|never|do\ not|don['’]t|from\ now\ on|make\ sure|avoid|prefer)\b[^?？]*$
    |(?:i|we|my|our|let['’]s|fyi|the\ decision)\b(?!['’]?[dm]?\ (?:want|need|would|like|am\ (?:looking|trying|searching)
    |wonder|wish|don['’]t\ (?:know|understand)|have\ a\ question))[^?？]*$)""",
    re.I | re.X,
)
"""Matches a statement rather than a question: a rule, or news about the person."""


def decide(view: View) -> Reply:
    """What to say or do next, never nothing. The same view gives the same reply. Never raises; every turn ends after at most
    three rounds."""
    seen = read_view(view)
    text = seen.question.strip()
    if not text:
        return Reply(phrases.NO_QUESTION)
    if said := next((said for pattern, said in _TALK if len(text) < 200 and pattern.search(text)), ""):
        return Reply(said)
    if wanted := command(text):
        return carry_out(wanted, seen)
    return Reply(phrases.NOTED) if told_only(text) else research(seen)


def told_only(text: str) -> bool:
    """Whether a message is a rule or news that asks for nothing."""
    return bool(_TOLD.match(text[:600]))


class OfflineAssistant:
    """A ModelPort that needs no key and no network. `count` counts tokens; `delay` is in seconds between two pieces."""

    name = OFFLINE_NAME
    address = ""
    keeps_reasoning = False
    refers_to_tools = False
    may_queue = False
    binds_thinking = False
    compacts = False
    efforts = ()

    def __init__(
        self,
        count: Count = rough_count,
        *,
        window: Window = OFFLINE_WINDOW,
        delay: float = 0.004,
    ) -> None:
        self._count = count
        self._counter = TokenCounter(count)
        self._window = window
        self._delay = delay

    def stated(self) -> Window:
        """As handed in."""
        return self._window

    async def window(self) -> Window:
        """As handed in."""
        return self._window

    def prices(self) -> None:
        """None: it is free."""

    def cache_rules(self, *, lasting: bool) -> CacheRules:
        """It keeps nothing."""
        return CacheRules()

    def takes_back(self, reply: Message) -> bool:
        """It does not think."""
        return False

    async def reached(self) -> bool:
        """It is here."""
        return True

    async def sampled(self) -> Calibration:
        """No calibration: it counts tokens exactly as the program does, since there is no server."""
        return level(1.0, band=0.02)

    def count(self, text: str) -> int:
        """Tokens of a text, by the counter passed in."""
        return self._count(text)

    def count_image(self, width: int, height: int) -> int:
        """Always 0: it takes no images."""
        return 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """The reply in small pieces. Raises ModelError (`overflow`) where the request is larger than the window, as a server
        would."""
        prompt = await asyncio.to_thread(self._weigh, request.view)
        if prompt > self._window.tokens:
            raise _overflow(prompt, self._window.tokens)
        reply = await asyncio.to_thread(decide, request.view)
        text, cut = await asyncio.to_thread(self._cut, reply.text, request.max_output)
        for piece in _pieces(reply.reasoning):
            yield ReasoningDelta(piece)
            await asyncio.sleep(self._delay)
        for piece in _pieces(text):
            yield TextDelta(piece)
            await asyncio.sleep(self._delay)
        for index, call in enumerate(reply.calls):
            yield CallPiece(index, call.name, call.arguments)
            await asyncio.sleep(self._delay)
        yield ReplyEnd(
            finish="tool_calls" if reply.calls else "length" if cut else "stop",
            calls=reply.calls,
            usage=Usage(prompt=prompt, completion=self._completion(msgspec.structs.replace(reply, text=text)),
                        reasoning=self._count(reply.reasoning)),
        )  # fmt: skip

    def _weigh(self, view: View) -> int:
        """Tokens of the whole request, by the assistant's own counter."""
        messages = sum(self._counter.message(item.message) for item in view.items)
        return messages + sum(self._counter.tool(tool.schema) for tool in view.tools)

    def _completion(self, reply: Reply) -> int:
        words = self._count(reply.text) + self._count(reply.reasoning)
        return words + sum(self._count(c.name) + self._count(c.arguments) for c in reply.calls)

    def _cut(self, text: str, most: int) -> tuple[str, bool]:
        """The answer, cut to at most `most` tokens (0: no limit), and whether it was cut."""
        if most <= 0 or self._count(text) <= most:
            return text, False
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._count(text[:middle]) <= most else (low, middle - 1)
        return text[:low], True


def _overflow(prompt: int, window: int) -> ModelError:
    return ModelError(
        f"The request holds {short(prompt)} tokens, more than the {short(window)} of the offline assistant's window.",
        "Free up context, or drop the largest messages.",
        kind="overflow",
        status=400,
        code="context_length_exceeded",
        body=f"This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens.",
    )


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of about the same size, larger for a long answer, so that it does not take long to show."""
    size = max(PIECE_CHARS, -(-len(text) // MAX_PIECES))
    return (text[i : i + size] for i in range(0, len(text), size))

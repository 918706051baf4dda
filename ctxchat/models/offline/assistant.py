"""The built-in (offline) assistant as a model: `decide` computes a reply from a view, and `OfflineAssistant` streams it in
pieces, so that the agent can use it in place of a language model.

A view is what a model would be sent: the conversation, and the tools it may call.
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
"""Characters in a streamed piece of an answer; more where the answer would have over `MAX_PIECES` pieces."""

MAX_PIECES = 150

_SMALL_TALK = tuple(
    (expression(pattern, re.I | re.X), answer)
    for pattern, answer in (
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
"""Questions about the assistant itself and phrases of politeness, each a pattern with its fixed answer."""

_STATEMENT = expression(
    r"""^(?:(?:always|never|do\ not|don['’]t|from\ now\ on|make\ sure|avoid|prefer)\b[^?？]*$
    |(?:i|we|my|our|let['’]s|fyi|the\ decision)\b(?!['’]?[dm]?\ (?:want|need|would|like|am\ (?:looking|trying|searching)
    |wonder|wish|don['’]t\ (?:know|understand)|have\ a\ question))[^?？]*$)""",
    re.I | re.X,
)
"""Matches a statement rather than a question: a rule, or news about the person."""


def decide(view: View) -> Reply:
    """The reply to a view: a text, or tool calls. The same view gives the same reply. Never raises, and never gives an empty
    reply; a turn has at most three rounds of calls."""
    seen = read_view(view)
    text = seen.question.strip()
    if not text:
        return Reply(phrases.NO_QUESTION)
    if fixed := next((answer for pattern, answer in _SMALL_TALK if len(text) < 200 and pattern.search(text)), ""):
        return Reply(fixed)
    if wanted := command(text):
        return carry_out(wanted, seen)
    return Reply(phrases.NOTED) if told_only(text) else research(seen)


def told_only(text: str) -> bool:
    """True for a message that only states something (a rule, a piece of news) and asks for nothing."""
    return bool(_STATEMENT.match(text[:600]))


class OfflineAssistant:
    """The built-in assistant as a `core.ports.ModelPort`; needs no key and no network.

    `count` counts the tokens of a text; `delay` is the time between two pieces, in seconds, so that its answers appear like those
    of a model.
    """

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
        """The window passed in."""
        return self._window

    async def window(self) -> Window:
        """The window passed in."""
        return self._window

    def prices(self) -> None:
        """None, since it is free."""

    def cache_rules(self, *, lasting: bool) -> CacheRules:
        """The rules of a provider without a prompt cache."""
        return CacheRules()

    def takes_back(self, reply: Message) -> bool:
        """False: it has no reasoning of its own that could be sent back."""
        return False

    async def reached(self) -> bool:
        """True: there is no server that could be unreachable."""
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
        """The reply in small pieces. Raises ModelError (`overflow`) where the request is larger than the window, as the error of
        a server would be."""
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
        """Tokens of the whole request: messages and descriptions of tools."""
        messages = sum(self._counter.message(item.message) for item in view.items)
        return messages + sum(self._counter.tool(tool.schema) for tool in view.tools)

    def _completion(self, reply: Reply) -> int:
        """Tokens of a reply: text, reasoning and calls."""
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
    """The error for a request of `prompt` tokens that is larger than the window, with a body in the words of OpenAI's servers."""
    return ModelError(
        f"The request holds {short(prompt)} tokens, more than the {short(window)} of the offline assistant's window.",
        "Free up context, or drop the largest messages.",
        kind="overflow",
        status=400,
        code="context_length_exceeded",
        body=f"This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens.",
    )


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of equal length; in a long answer the pieces are longer, so that it does not take long to appear."""
    size = max(PIECE_CHARS, -(-len(text) // MAX_PIECES))
    return (text[i : i + size] for i in range(0, len(text), size))

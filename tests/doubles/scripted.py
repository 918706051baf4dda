"""A model that plays a script: for tests of the agent and for demonstrations. It keeps every request it was sent.

Knows nothing of what a reply means; pieces, errors and pauses come out exactly as they were written down.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Literal

import msgspec

from ctxchat.core.budget import Window
from ctxchat.core.cache import CacheRules
from ctxchat.core.calibration import Calibration
from ctxchat.core.errors import ModelError
from ctxchat.core.events import ReasoningDelta, TextDelta, Usage
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.ports import CallPiece, ModelPiece, ModelRequest, ReplyEnd, ReplyNotes
from ctxchat.core.prices import ModelPrices
from ctxchat.core.tokens import Count, image_tokens, rough_count
from ctxchat.core.view import View

Counted = Literal["counted"]
"""As a usage: let the model count the request and the reply itself, as a server would."""


class Wait(msgspec.Struct, frozen=True):
    """A pause in a reply, in seconds; infinite for one that only a cancel ends."""

    seconds: float


class End(msgspec.Struct, frozen=True):
    """The end of a scripted reply. Calls without an id get one when they are played, new each time."""

    finish: Literal["stop", "tool_calls", "length", "content_filter"] = "stop"
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | Counted | None = "counted"


Step = TextDelta | ReasoningDelta | CallPiece | Wait | End | ModelError
Reply = tuple[Step, ...]
"""What happens during one model call, in order."""

Script = Iterable[Reply | Callable[[ModelRequest], Reply]]
"""One reply a call, or a function that makes it from the request. May be endless."""


def says(
    text: str,
    *,
    reasoning: str = "",
    usage: Usage | Counted | None = "counted",
    finish: Literal["stop", "length", "content_filter"] = "stop",
    delay: float = 0.0,
) -> Reply:
    """An answer in words, streamed word by word with `delay` seconds before each."""
    return (*_spoken(reasoning, text, delay), End(finish=finish, usage=usage))


def calls(
    *wanted: tuple[str, Mapping[str, object] | str] | ToolCall,
    text: str = "",
    reasoning: str = "",
    usage: Usage | Counted | None = "counted",
    delay: float = 0.0,
) -> Reply:
    """Tool calls, each a name with its arguments (an object, or JSON text as a model might write it, broken or not)."""
    made = tuple(_call(w) for w in wanted)
    fragments = [CallPiece(index=i, name=c.name, arguments=c.arguments) for i, c in enumerate(made)]
    return (*_spoken(reasoning, text, delay), *fragments, End(finish="tool_calls", calls=made, usage=usage))


def fails(error: ModelError, after: str = "") -> Reply:
    """A call that raises `error`, once `after` has been streamed."""
    return (*_spoken("", after, 0.0), error)


def hangs(after: str = "") -> Reply:
    """A call that streams `after` and then nothing more until it is cancelled."""
    return (*_spoken("", after, 0.0), Wait(float("inf")))


class ScriptedModel:
    """A ModelPort that plays `script`, one reply a call. Past its end a call raises ModelError (`bad_request`).

    `requests` are the calls it got, `cut_short` how many of them were closed before their end.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted/model",
        window: Window = Window(32_768, "configured"),  # noqa: B008 (frozen)
        count: Count = rough_count,
        keeps_reasoning: bool = False,
        sees: bool = True,
        stated: Window | None = None,
        address: str = "",
        binds_thinking: bool = False,
        efforts: tuple[str, ...] | None = (),
        limit: int = 0,
        prices: ModelPrices | None = None,
        rules: CacheRules = CacheRules(),  # noqa: B008 (frozen)
        prefill: float = 0.0,
        may_queue: bool = False,
    ) -> None:
        self._notes = ReplyNotes(prefill=prefill)
        self._prices, self._rules = prices, rules
        self.efforts = efforts
        self._limit = limit  # tokens a reply is allowed, where a request does not say
        self._script = iter(script)
        self._name = name
        self._window, self._stated = window, stated or window
        self._count = count
        self._keeps_reasoning = keeps_reasoning
        self._sees = sees
        self._address = address
        self._binds_thinking, self._may_queue = binds_thinking, may_queue
        self.there = True  # somebody takes connections
        self._ids = itertools.count(1)
        self.requests: list[ModelRequest] = []
        self.cut_short = 0

    @property
    def name(self) -> str:
        """As handed in."""
        return self._name

    @property
    def address(self) -> str:
        """As handed in."""
        return self._address

    @property
    def keeps_reasoning(self) -> bool:
        """As handed in."""
        return self._keeps_reasoning

    @property
    def binds_thinking(self) -> bool:
        """As handed in."""
        return self._binds_thinking

    compacts = False
    refers_to_tools = False

    def takes_back(self, reply: Message) -> bool:
        """Whatever was thought, where it keeps any."""
        return self._keeps_reasoning and reply.reasoning is not None

    @property
    def may_queue(self) -> bool:
        """As handed in."""
        return self._may_queue

    @property
    def views(self) -> list[View]:
        """What each request held."""
        return [request.view for request in self.requests]

    def stated(self) -> Window:
        """As handed in, else the window itself."""
        return self._stated

    async def window(self) -> Window:
        """As handed in."""
        return self._window

    def prices(self) -> ModelPrices | None:
        """As handed in."""
        return self._prices

    def cache_rules(self, *, lasting: bool) -> CacheRules:
        """As handed in."""
        return self._rules

    async def reached(self) -> bool:
        """As long as it is said to be `there`."""
        return self.there

    async def sampled(self) -> Calibration:
        """Nothing: no server stands behind it."""
        return Calibration()

    def count(self, text: str) -> int:
        """Tokens by the counter that was handed in."""
        return self._count(text)

    def count_image(self, width: int, height: int) -> int:
        """By the usual rule; 0 for a model that is made without `sees`."""
        return image_tokens(width, height) if self._sees else 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """The next reply of the script. Raises what the script raises."""
        self.requests.append(request)
        reply = self._next(request)
        said: list[str] = []
        whole = False
        try:
            for step in reply:
                if isinstance(step, Wait):
                    await _pause(step.seconds)
                elif isinstance(step, ModelError):
                    whole = True
                    raise step
                elif isinstance(step, End):
                    whole = True
                    yield self._end(step, request, self._count("".join(said)))
                else:
                    said.append(step.arguments if isinstance(step, CallPiece) else step.text)
                    yield step
                    await asyncio.sleep(0)
        finally:
            self.cut_short += not whole

    def _next(self, request: ModelRequest) -> Reply:
        for reply in self._script:
            return reply(request) if callable(reply) else reply
        raise ModelError(f"The script holds no reply for call {len(self.requests)}.", kind="bad_request")

    def _end(self, step: End, request: ModelRequest, said: int) -> ReplyEnd:
        usage = Usage(prompt=request.view.raw, completion=said) if step.usage == "counted" else step.usage
        named = tuple(c if c.id else msgspec.structs.replace(c, id=f"call-{next(self._ids)}") for c in step.calls)
        limit = self._limit or request.max_output
        return ReplyEnd(finish=step.finish, calls=named, usage=usage, limit=limit, notes=self._notes)


async def _pause(seconds: float) -> None:
    if seconds == float("inf"):
        await asyncio.Event().wait()
    await asyncio.sleep(seconds)


def _spoken(reasoning: str, text: str, delay: float) -> list[Step]:
    steps: list[Step] = [ReasoningDelta(word) for word in _words(reasoning)]
    for word in _words(text):
        steps += [Wait(delay), TextDelta(word)] if delay else [TextDelta(word)]
    return steps


def _words(text: str) -> list[str]:
    """The text in pieces that end after a space, nothing lost."""
    parts = text.split(" ")
    return [p for p in (*(f"{part} " for part in parts[:-1]), parts[-1]) if p]


def _call(wanted: tuple[str, Mapping[str, object] | str] | ToolCall) -> ToolCall:
    if isinstance(wanted, ToolCall):
        return wanted
    name, arguments = wanted
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return ToolCall(id="", name=name, arguments=written)

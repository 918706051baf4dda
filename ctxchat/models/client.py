"""The model port for every model that is served somewhere: shapes a request for its provider and streams it through a transport.

Does not know which transport it is, and never retries; what went wrong is told as ModelError.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import Any, Protocol, cast

import msgspec

from ctxchat.core.addresses import is_here
from ctxchat.core.budget import Window
from ctxchat.core.cache import CacheRules
from ctxchat.core.calibration import Calibration
from ctxchat.core.errors import ModelError
from ctxchat.core.images import addressed
from ctxchat.core.messages import Message
from ctxchat.core.notes import CONTINUE_REQUEST
from ctxchat.core.openai import Wire
from ctxchat.core.ports import ModelPiece, ModelRequest, ReplyEnd
from ctxchat.core.prices import ModelPrices, cost
from ctxchat.core.view import Item
from ctxchat.models import anthropic, catalogue, deferred_tools, dialects, images, network, responses, samples, windows
from ctxchat.models.failures import allowed_output, remedy
from ctxchat.models.probes import PROBE_TIMEOUT_S, listens
from ctxchat.models.provider_lists import ListedModel, ProviderLists
from ctxchat.models.settings import Lookup, ModelSettings, key_for, lookup
from ctxchat.models.tokenizers import counter
from ctxchat.models.tool_schemas import tools_for

ANTHROPIC_OUTPUT_TOKENS = 8192
"""Tokens of output asked for where nothing at all is known: Anthropic's form wants a figure."""


_HOUR_LONG_MARKS = frozenset({"anthropic", "openrouter"})
"""Providers whose cache marks can last an hour, by litellm's prefix."""

_BATCHING = frozenset({"hosted_vllm", "litellm_proxy"})
"""Servers of one's own that answer several requests at once."""


class ModelTransport(Protocol):
    """A way to a model: the process that holds litellm (`process.Worker`), or straight to its server
    (`straight.DirectTransport`)."""

    async def start(self) -> None:
        """Make ready for a first call, without waiting for what takes long. Raises ModelError."""
        ...

    def stream(self, arguments: dict[str, Any], timeout: float) -> AsyncGenerator[ModelPiece, None]:
        """One reply: pieces, then one ReplyEnd. `arguments` are litellm's (model, messages, tools, api_base, …), with `session`
        and `effort` as in the request; `timeout` in seconds without a byte. Raises ModelError. Closing it closes the
        connection within a second."""
        ...


_WANTS_TEXT = re.compile(
    r"content\b.{0,120}(?:null|none\b|string|required|missing|empty|text)|(?:null|none\b|missing|required).{0,80}\bcontent\b",
    re.I | re.DOTALL,
)
"""How servers refuse a message without a text, calls or not."""

IN_WORDS = "The server takes no references to tools: those that are found are told in words from now on, for call_tool."
"""What a person is told where a Claude's own way to tools on demand is refused."""


class ModelClient:
    """One model. Raises UsageError when made for a name nobody serves. `find` looks keys up, at the moment of a call; `lists` is
    what providers say of their models, None where nobody is asked; `loads_late`: its server takes references to tools, None for
    what is known of its address."""

    def __init__(
        self,
        settings: ModelSettings,
        transport: ModelTransport,
        find: Lookup = lookup,
        lists: ProviderLists | None = None,
        loads_late: bool | None = None,
    ) -> None:
        self.settings = settings
        self._loads_late = loads_late
        self._lists = lists
        provider = settings.provider
        own_server = bool(settings.api_base) or provider.local
        known = dialects.family(provider.prefix, settings.model, own_server=own_server)
        self._dialect = dialects.RESPONSES if responses.uses_responses_form(settings) else known
        self._transport = transport
        self._find = find
        self._count = counter(settings.name)
        self._wants_text = False  # empty texts beside calls, where others take null
        self._describes = False  # tools that were found in words, where a model of this kind takes references
        self._remark = ""  # what a person is told with the next reply
        self._able = 0  # tokens of the longest reply, where a refusal told it
        self._told_of_sight: bool | None = None  # by its server, when it was asked for its window
        self._loaded: Window | None = None  # what Ollama was asked to load: another figure would load the model again

    @property
    def name(self) -> str:
        """litellm's name of it."""
        return self.settings.name

    async def warm_up(self) -> None:
        """Make ready for a first call. Raises ModelError."""
        await self._transport.start()

    @property
    def address(self) -> str | None:
        """As set or usual for it."""
        base = self.settings.api_base
        return None if "@" in base else base  # a login is no one's to store

    @property
    def keeps_reasoning(self) -> bool:
        """As set, else as the provider wants it."""
        kept = self.settings.keep_reasoning
        return bool(self._dialect.reasoning) if kept is None else kept

    @property
    def binds_thinking(self) -> bool:
        """For every Claude whose thoughts go back: which accounts are checked nobody can tell beforehand."""
        return self.keeps_reasoning and self._dialect in (dialects.ANTHROPIC, dialects.OPENROUTER_CLAUDE)

    @property
    def compacts(self) -> bool:
        """By the catalogue, where it is asked in Anthropic's form."""
        return anthropic.compacts(self.settings)

    def takes_back(self, reply: Message) -> bool:
        """As its provider's form allows."""
        return self.keeps_reasoning and dialects.takes_back(reply, self._dialect, self.name)

    @property
    def may_queue(self) -> bool:
        """On loopback, where whoever listens may be any server; not vLLM, which batches, nor what passes requests on."""
        provider = self.settings.provider
        own = provider.local or provider.prefix in windows.ANYBODYS
        return own and provider.prefix not in _BATCHING and is_here(self.settings.base)

    @property
    def _sees(self) -> bool:
        return self._known_to_see if self._told_of_sight is None else self._told_of_sight

    @cached_property
    def _known_to_see(self) -> bool:
        said = self._listed.sees if self.settings.vision is None else None
        return images.takes_images(self.settings) if said is None else said

    @property
    def _listed(self) -> ListedModel:
        """What its provider says of it."""
        return (self._lists and self._lists.find(self.settings)) or ListedModel()

    def prices(self) -> ModelPrices | None:
        """By its provider's list, else the catalogue."""
        return self._listed.prices or catalogue.prices(self.settings.name)

    def cache_rules(self, *, lasting: bool) -> CacheRules:
        """By what its provider promises, and the marks that are set."""
        prices, marked = self.prices(), self._dialect.markers
        if prices is None:
            return CacheRules(marks=marked)
        long = marked and self._lasts_an_hour(lasting) and prices.long_cache_life > 0
        return CacheRules(prices.long_cache_life if long else prices.cache_life, long, marked)

    def _lasts_an_hour(self, lasting: bool) -> bool:
        return lasting and self.settings.provider.prefix in _HOUR_LONG_MARKS

    @property
    def efforts(self) -> tuple[str, ...] | None:
        """By its provider's list, else the catalogue."""
        said = self._listed.efforts
        return catalogue.efforts(self.settings.name) if said is None else said

    def count(self, text: str) -> int:
        """Tokens of a text by the model's family; never raises."""
        return self._count(text)

    def count_image(self, width: int, height: int) -> int:
        """Tokens of an image as its provider counts them; 0 where the model takes none."""
        return images.token_count(self._dialect, self.settings.model, width, height) if self._sees else 0

    def stated(self) -> Window:
        """What is set, else what its provider's list or the catalogue says; reads those the first time."""
        return windows.without_server(self.settings, self._listed.window)

    async def window(self) -> Window:
        """The window the server really has, as far as it can be learned, and on the way whether its model takes images; asks
        local servers each time, and its provider once a day."""
        if self._loaded:
            return self._loaded
        listed = await self._renewed_list()
        found, seen = await asyncio.gather(windows.detect(self.settings, listed), images.taken_there(self.settings))
        self._told_of_sight = self._told_of_sight if seen is None else seen
        if windows.sets_window(self.settings) and found.source in {"loaded", "configured"}:
            self._loaded = found
        return found

    async def _renewed_list(self) -> int:
        """The window by its provider's list, which is asked for anew where it is old; waited for, briefly, where nothing else
        says anything of the model."""
        if self._lists is None:
            return 0
        listed = await asyncio.to_thread(lambda: self._listed.window)
        try:
            key = await asyncio.to_thread(key_for, self.settings, self._find)
        except ModelError:
            return listed
        renewing = self._lists.renew(self.settings, key)
        if renewing and not listed and (await asyncio.to_thread(self.stated)).source == "assumed":
            await asyncio.wait({renewing}, timeout=PROBE_TIMEOUT_S)
        return self._listed.window

    async def reached(self) -> bool:
        """Asks servers of one's own only."""
        own_server = bool(self.settings.api_base) or self.settings.provider.local
        return not own_server or await listens(self.settings.base)

    async def sampled(self) -> Calibration:
        """How the model counts: by its family, and a server of one's own where it says; a provider is not asked."""
        return await samples.sampled(self.settings, self._dialect)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Pieces, then exactly one ReplyEnd. Raises ModelError. Closing it closes the connection within a second. A request
        that was refused for the length of the reply, for a message without a text or for references to tools is made again as its
        server wants it."""
        arguments = await self._arguments(request)
        try:
            async with aclosing(self._sent(arguments)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except ModelError as problem:
            again = self._mended(arguments, problem)
            if again is None:
                raise
        async with aclosing(self._sent(again)) as pieces:
            async for piece in pieces:
                yield piece

    def _mended(self, arguments: Mapping[str, object], problem: ModelError) -> dict[str, object] | None:
        """The request as its server wants it, which is remembered; None where that is not what is wrong."""
        asked = arguments.get("max_tokens")
        if allowed := allowed_output(problem, asked if isinstance(asked, int) else 0):
            self._able = allowed
            return {**arguments, "max_tokens": allowed}
        if not self._describes and self._loads_tools_late and deferred_tools.refused(arguments, problem):
            self._describes = True
            self._remark = f"{IN_WORDS} {problem.text}"
            return dict(arguments)
        messages = cast("list[Wire]", arguments["messages"])
        if problem.kind != "bad_request" or self._wants_text or not _WANTS_TEXT.search(problem.body or problem.text):
            return None
        if all(message.get("content") is not None for message in messages):
            return None
        self._wants_text = True
        return {**arguments, "messages": _with_texts(messages)}

    async def _sent(self, arguments: dict[str, object]) -> AsyncGenerator[ModelPiece, None]:
        sent = arguments if self._describes else await asyncio.to_thread(self._by_reference, arguments)
        try:
            async with aclosing(self._transport.stream(sent, self.settings.timeout)) as pieces:
                async for piece in pieces:
                    yield await self._completed_end(piece, arguments) if isinstance(piece, ReplyEnd) else piece
        except ModelError as problem:
            problem.hint = remedy(self.settings, problem) or problem.hint
            raise

    def _by_reference(self, arguments: dict[str, object]) -> dict[str, object]:
        return deferred_tools.by_reference(arguments) if self._loads_tools_late else arguments

    @cached_property
    def _loads_tools_late(self) -> bool:
        return anthropic.loads_tools_late(self.settings) if self._loads_late is None else self._loads_late

    async def _completed_end(self, end: ReplyEnd, arguments: Mapping[str, object]) -> ReplyEnd:
        """The end of a reply with what it cost, where its server did not say, and what it was allowed."""
        limit, usage = arguments.get("max_tokens"), end.usage
        prices = None if usage is None or end.priced else await asyncio.to_thread(self.prices)
        if usage and prices:
            usage = msgspec.structs.replace(usage, cost_usd=cost(prices, usage))
        remark, self._remark = self._remark, ""
        notes = msgspec.structs.replace(end.notes, remark=remark) if remark else end.notes
        return msgspec.structs.replace(end, usage=usage, limit=limit if isinstance(limit, int) else 0, notes=notes)

    async def _arguments(self, request: ModelRequest) -> dict[str, object]:
        settings = self.settings
        await asyncio.to_thread(network.check_network_settings, settings)
        messages = await asyncio.to_thread(self._messages, request)
        messages = _with_texts(messages) if self._wants_text else messages
        arguments: dict[str, object] = {**settings.extra, "model": settings.name, "messages": messages}
        if request.view.tools:
            arguments["tools"] = await asyncio.to_thread(tools_for, self._dialect, request.view.tools)
        if settings.base:
            arguments["api_base"] = settings.base
        if key := await asyncio.to_thread(key_for, settings, self._find):
            arguments["api_key"] = key
        if output := await asyncio.to_thread(self._output, request.max_output):
            arguments["max_tokens"] = output
        if request.session:
            arguments["session"] = request.session
        if request.compaction:
            arguments["compaction"] = request.compaction
        if request.effort:
            arguments["effort"] = await asyncio.to_thread(self._effort, request.effort)
        budgeted = self._dialect is dialects.ANTHROPIC and "adaptive" not in str(settings.extra.get("thinking"))
        if budgeted and not dialects.may_think(messages):
            arguments = {k: v for k, v in arguments.items() if k not in {"thinking", "reasoning_effort"}}
        if windows.sets_window(settings):
            arguments |= await self._ollama()
        return arguments

    def _placed(self, request: ModelRequest) -> list[Item]:
        """The view with its images as this model can be sent them."""
        shown, refused = self._sees, self._dialect.refused_images
        placed = [(i, addressed(i.message, request.images, shown=shown, refused=refused)) for i in request.view.items]
        return [i if message is i.message else msgspec.structs.replace(i, message=message) for i, message in placed]

    def _messages(self, request: ModelRequest) -> list[Wire]:
        """The conversation on the wire, with marks for the provider's cache where it takes them."""
        items = self._placed(request)
        lasting = self._lasts_an_hour(request.lasting)
        messages = dialects.shape(
            items, self._dialect, keep_reasoning=self.keeps_reasoning, model=self.name, lasting=lasting
        )
        if (
            messages and messages[-1]["role"] == "assistant" and not request.compaction
        ):  # no view of ours ends so; one that was edited may
            messages.append({"role": "user", "content": CONTINUE_REQUEST})
        return messages

    def _effort(self, effort: str) -> str:
        """That one, where the model has it. Raises ModelError that names those it has."""
        known = self.efforts
        if known is None or effort in known:
            return effort
        has = f"It has {', '.join(known)}." if known else "It has none at all."
        raise ModelError(f"{self.name} has no effort {effort!r}.", has, kind="bad_request")

    def _output(self, room: int) -> int:
        """The tokens a reply may have: what the model can write, what there is `room` for, what is set, whichever is least; 0
        where nothing is known of any."""
        entry = catalogue.catalogue_model(self.settings.name)
        able = self._able or self._listed.output or (entry.output if entry else 0)
        needed = ANTHROPIC_OUTPUT_TOKENS if self._dialect is dialects.ANTHROPIC else 0
        return min(filter(None, (able, room, self.settings.max_output)), default=needed)

    async def _ollama(self) -> dict[str, object]:
        """Its window goes with each request, and what does not fit must be refused, not silently cut in front."""
        extra = self.settings.extra.get("extra_body")
        body = extra if isinstance(extra, dict) else {}
        window = await self.window()
        return {"num_ctx": window.tokens, "extra_body": {**body, "truncate": False, "shift": False}}


def _with_texts(messages: Sequence[Wire]) -> list[Wire]:
    """Messages of which each has a text, if an empty one."""
    return [{**message, "content": ""} if message.get("content") is None else message for message in messages]

"""The model port for every model behind a server: shapes requests for the provider and streams replies through a transport.

Does not know which transport it uses. Repeats a request only in the form that its server asked for; errors are ModelError.
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
"""Output tokens requested where no limit is known: Anthropic's form requires a number."""


_HOUR_LONG_MARKS = frozenset({"anthropic", "openrouter"})
"""Providers whose cache markers can last an hour, by litellm's prefix."""

_BATCHING = frozenset({"hosted_vllm", "litellm_proxy"})
"""Self-hosted servers that answer several requests at once, by litellm's prefix."""


class ModelTransport(Protocol):
    """Carries requests to a model: the process that holds litellm (`process.ModelProcess`), or a direct connection to its server
    (`direct.DirectTransport`)."""

    async def start(self) -> None:
        """Prepare for the first call, without waiting for anything slow. Raises ModelError."""
        ...

    def stream(self, arguments: dict[str, Any], timeout: float) -> AsyncGenerator[ModelPiece, None]:
        """One reply: pieces, then one ReplyEnd. `arguments` are litellm's (model, messages, tools, api_base, …), with `session`
        and `effort` as in the request; `timeout` in seconds without a byte. Raises ModelError. Closing the generator closes
        the connection within a second."""
        ...


_WANTS_TEXT = re.compile(
    r"content\b.{0,120}(?:null|none\b|string|required|missing|empty|text)|(?:null|none\b|missing|required).{0,80}\bcontent\b",
    re.I | re.DOTALL,
)
"""Matches the errors of servers that require a text in every message, also in one with calls."""

IN_WORDS = "The server takes no references to tools: those that are found are told in words from now on, for call_tool."
"""The notice to the person where a server refuses Anthropic's own form of loading tools on demand."""

ONE_IN_WORDS = "its definition was refused, so it is told in words, for call_tool."
"""The end of the notice to the person where a server refuses one tool that was found."""


class ModelClient:
    """One model behind a server. Raises UsageError for a name without a provider.

    `find` looks up the API key, at each call. `lists` are the providers' model lists, None where providers are not asked.
    `loads_late`: whether its server accepts references to tools loaded on demand; None decides by its address.
    """

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
        self._wants_text = False  # its server requires empty texts beside calls, where others accept null
        self._describes = False  # tools found on demand are described as text, since its server takes no references
        self._described = frozenset[
            str
        ]()  # those that are, since their definitions were refused where others were accepted
        self._took_references = False
        self._remark = ""  # notice to the person, sent with the next reply
        self._output_limit = 0  # output limit in tokens, learned from a refusal; 0 where unknown
        self._told_of_sight: bool | None = None  # whether it takes images, as its server said when asked for its window
        self._loaded: Window | None = None  # the window Ollama was asked for: another one would reload the model

    @property
    def name(self) -> str:
        """litellm's name for the model."""
        return self.settings.name

    async def warm_up(self) -> None:
        """Prepare the transport for the first call. Raises ModelError."""
        await self._transport.start()

    @property
    def address(self) -> str | None:
        """The server's address from the settings; None where it contains a login."""
        base = self.settings.api_base
        return None if "@" in base else base  # a login must not be stored

    @property
    def keeps_reasoning(self) -> bool:
        """Whether its thinking is sent back, as set or else as the provider requires."""
        kept = self.settings.keep_reasoning
        return bool(self._dialect.reasoning) if kept is None else kept

    @property
    def binds_thinking(self) -> bool:
        """Whether its server may check that thinking is sent back unchanged: assumed for every Claude whose thinking is sent
        back, since it depends on the account."""
        return self.keeps_reasoning and self._dialect in (dialects.ANTHROPIC, dialects.OPENROUTER_CLAUDE)

    @property
    def compacts(self) -> bool:
        """Whether its provider can summarise a conversation: by the catalogue, for models called in Anthropic's form."""
        return anthropic.compacts(self.settings)

    @property
    def refers_to_tools(self) -> bool:
        """Whether its server accepts references to tools, by its address; what a refusal changes was never accepted."""
        return self._loads_tools_late

    def takes_back(self, reply: Message) -> bool:
        """Whether the thinking of this reply is sent back, as its provider's form allows."""
        return self.keeps_reasoning and dialects.takes_back(reply, self._dialect, self.name)

    @property
    def may_queue(self) -> bool:
        """Whether its server may answer one request at a time: any on loopback, except those that batch or forward requests."""
        provider = self.settings.provider
        own = provider.local or provider.prefix in windows.ANYBODYS
        return own and provider.prefix not in _BATCHING and is_here(self.settings.base)

    @property
    def _sees(self) -> bool:
        return self._known_to_see if self._told_of_sight is None else self._told_of_sight

    @cached_property
    def _known_to_see(self) -> bool:
        listed = self._listed.sees if self.settings.vision is None else None
        return images.takes_images(self.settings) if listed is None else listed

    @property
    def _listed(self) -> ListedModel:
        """The model's entry in its provider's list; an empty one where there is none."""
        return (self._lists and self._lists.find(self.settings)) or ListedModel()

    def prices(self) -> ModelPrices | None:
        """The prices in its provider's list, else in the catalogue; None where unknown."""
        return self._listed.prices or catalogue.prices(self.settings.name)

    def cache_rules(self, *, lasting: bool) -> CacheRules:
        """The lifetime of its provider's cache, and whether requests carry cache markers. `lasting`: a person reads and thinks
        between messages, so markers for an hour are used where possible."""
        prices, marked = self.prices(), self._dialect.markers
        if prices is None:
            return CacheRules(marks=marked)
        long = marked and self._lasts_an_hour(lasting) and prices.long_cache_life > 0
        return CacheRules(prices.long_cache_life if long else prices.cache_life, long, marked)

    def _lasts_an_hour(self, lasting: bool) -> bool:
        return lasting and self.settings.provider.prefix in _HOUR_LONG_MARKS

    @property
    def efforts(self) -> tuple[str, ...] | None:
        """The reasoning efforts in its provider's list, else in the catalogue; None where unknown."""
        listed = self._listed.efforts
        return catalogue.efforts(self.settings.name) if listed is None else listed

    def count(self, text: str) -> int:
        """Tokens of a text, by the tokenizer of the model's family; never raises."""
        return self._count(text)

    def count_image(self, width: int, height: int) -> int:
        """Tokens of an image as its provider counts them; 0 where the model takes no images."""
        return images.token_count(self._dialect, self.settings.model, width, height) if self._sees else 0

    def stated(self) -> Window:
        """The context window from the settings, else from its provider's list or the catalogue, which the first call reads."""
        return windows.without_server(self.settings, self._listed.window)

    async def window(self) -> Window:
        """The context window the server really has, as far as it can be found out. Asks local servers each time, and its provider
        once a day; also records whether the model takes images."""
        if self._loaded:
            return self._loaded
        listed = await self._renewed_list()
        window, sees = await asyncio.gather(windows.detect(self.settings, listed), images.taken_there(self.settings))
        self._told_of_sight = self._told_of_sight if sees is None else sees
        if windows.sets_window(self.settings) and window.source in {"loaded", "configured"}:
            self._loaded = window
        return window

    async def _renewed_list(self) -> int:
        """The window in its provider's list, 0 where unknown. An old list is renewed; that is waited for, briefly, only where the
        window is not known otherwise."""
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
        """Whether its server accepts connections. Only self-hosted servers are checked; others count as reachable."""
        own_server = bool(self.settings.api_base) or self.settings.provider.local
        return not own_server or await listens(self.settings.base)

    async def sampled(self) -> Calibration:
        """How the model counts tokens: by its family, and by its server where that is self-hosted and tells. Providers are not
        asked."""
        return await samples.sampled(self.settings, self._dialect)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Pieces, then exactly one ReplyEnd. Raises ModelError. Closing the generator closes the connection within a second. A
        request refused for its output limit, for a message without text or for references to tools is repeated in the form its
        server requires."""
        arguments = await self._arguments(request)
        try:
            async with aclosing(self._send(arguments)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except ModelError as problem:
            corrected = self._corrected(arguments, problem)
            if corrected is None:
                raise
        async with aclosing(self._send(corrected)) as pieces:
            async for piece in pieces:
                yield piece

    def _corrected(self, arguments: Mapping[str, object], problem: ModelError) -> dict[str, object] | None:
        """The refused request in the form its server requires, which is remembered; None where it failed for another reason."""
        requested = arguments.get("max_tokens")
        if allowed := allowed_output(problem, requested if isinstance(requested, int) else 0):
            self._output_limit = allowed
            return {**arguments, "max_tokens": allowed}
        if names := deferred_tools.refused(self._by_reference(arguments), problem):
            if self._took_references:  # what was accepted stays as it was sent
                self._described |= names
                self._remark = f"{', '.join(sorted(names))}: {ONE_IN_WORDS} {problem.text}"
            else:
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

    async def _send(self, arguments: dict[str, object]) -> AsyncGenerator[ModelPiece, None]:
        """Stream one reply through the transport; a ModelError gets the remedy that fits the provider."""
        sent = await asyncio.to_thread(self._by_reference, arguments)
        try:
            async with aclosing(self._transport.stream(sent, self.settings.timeout)) as pieces:
                async for piece in pieces:
                    self._took_references = self._took_references or deferred_tools.has_references(sent)
                    yield await self._completed_end(piece, arguments) if isinstance(piece, ReplyEnd) else piece
        except ModelError as problem:
            problem.hint = remedy(self.settings, problem) or problem.hint
            raise

    def _by_reference(self, arguments: Mapping[str, object]) -> dict[str, object]:
        if self._describes or not self._loads_tools_late:
            return dict(arguments)
        return deferred_tools.by_reference(arguments, self._described)

    @cached_property
    def _loads_tools_late(self) -> bool:
        return anthropic.loads_tools_late(self.settings) if self._loads_late is None else self._loads_late

    async def _completed_end(self, end: ReplyEnd, arguments: Mapping[str, object]) -> ReplyEnd:
        """The end of a reply with its cost, where its server did not report it, its output limit, and the pending notice."""
        limit, usage = arguments.get("max_tokens"), end.usage
        prices = None if usage is None or end.priced else await asyncio.to_thread(self.prices)
        if usage and prices:
            usage = msgspec.structs.replace(usage, cost_usd=cost(prices, usage))
        remark, self._remark = self._remark, ""
        notes = msgspec.structs.replace(end.notes, remark=remark) if remark else end.notes
        return msgspec.structs.replace(end, usage=usage, limit=limit if isinstance(limit, int) else 0, notes=notes)

    async def _arguments(self, request: ModelRequest) -> dict[str, object]:
        """The arguments of a call for either transport, in litellm's form: the messages in the dialect's form, tools, address,
        key and limits."""
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
        """The view's messages, with images in the form that this model accepts."""
        shown, refused = self._sees, self._dialect.refused_images
        placed = [(i, addressed(i.message, request.images, shown=shown, refused=refused)) for i in request.view.items]
        return [i if message is i.message else msgspec.structs.replace(i, message=message) for i, message in placed]

    def _messages(self, request: ModelRequest) -> list[Wire]:
        """The conversation in the provider's form, with cache markers where the provider takes them."""
        items = self._placed(request)
        lasting = self._lasts_an_hour(request.lasting)
        messages = dialects.shape(
            items, self._dialect, keep_reasoning=self.keeps_reasoning, model=self.name, lasting=lasting
        )
        if (
            messages and messages[-1]["role"] == "assistant" and not request.compaction
        ):  # only a view edited by a transform can end like this
            messages.append({"role": "user", "content": CONTINUE_REQUEST})
        return messages

    def _effort(self, effort: str) -> str:
        """The effort, if the model has it. Raises ModelError that names the efforts it has."""
        known = self.efforts
        if known is None or effort in known:
            return effort
        has = f"It has {', '.join(known)}." if known else "It has none at all."
        raise ModelError(f"{self.name} has no effort {effort!r}.", has, kind="bad_request")

    def _output(self, room: int) -> int:
        """The output limit in tokens: the least of the model's own, the `room` in the window and the setting; where none is
        known, 0 or what Anthropic's form requires."""
        entry = catalogue.catalogue_model(self.settings.name)
        limit = self._output_limit or self._listed.output or (entry.output if entry else 0)
        default = ANTHROPIC_OUTPUT_TOKENS if self._dialect is dialects.ANTHROPIC else 0
        return min(filter(None, (limit, room, self.settings.max_output)), default=default)

    async def _ollama(self) -> dict[str, object]:
        """Arguments for Ollama: its window, sent with each request, and to refuse what does not fit rather than cut the
        beginning."""
        extra = self.settings.extra.get("extra_body")
        body = extra if isinstance(extra, dict) else {}
        window = await self.window()
        return {"num_ctx": window.tokens, "extra_body": {**body, "truncate": False, "shift": False}}


def _with_texts(messages: Sequence[Wire]) -> list[Wire]:
    """The messages, with an empty text in those that have none."""
    return [{**message, "content": ""} if message.get("content") is None else message for message in messages]

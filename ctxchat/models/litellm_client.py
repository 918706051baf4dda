"""core.ports.ModelPort for every provider litellm reaches: shapes a request for its provider and streams it through the worker.

Does not import litellm and never retries; what went wrong is told as ModelError.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ctxchat.core.budget import Window
from ctxchat.core.openai import Wire, wire, wire_tools
from ctxchat.core.ports import ModelPiece, ModelRequest
from ctxchat.core.view import Item
from ctxchat.models import catalogue, dialects, windows
from ctxchat.models.keys import Lookup, key_for, lookup
from ctxchat.models.process import Worker
from ctxchat.models.settings import ModelSettings
from ctxchat.models.tokenizers import counter

ANTHROPIC_OUTPUT = 8192
"""Tokens of output asked for where nothing is set: without a figure litellm reserves the model's whole 64,000."""


class LitellmModel:
    """One model. Raises UsageError when made for a name nobody serves. `find` looks keys up, at the moment of a call."""

    def __init__(self, settings: ModelSettings, worker: Worker, find: Lookup = lookup) -> None:
        self.settings = settings
        provider = settings.provider
        own_server = bool(settings.api_base) or provider.local
        self._dialect = dialects.family(provider.prefix, settings.model, own_server=own_server)
        self._worker = worker
        self._find = find
        self._count = counter(settings.name)
        self._loaded: Window | None = None  # what Ollama was asked to load: another figure would load the model again

    @property
    def name(self) -> str:
        """litellm's name of it."""
        return self.settings.name

    @property
    def keeps_reasoning(self) -> bool:
        """As set, else as the provider wants it."""
        kept = self.settings.keep_reasoning
        return bool(self._dialect.reasoning) if kept is None else kept

    def count(self, text: str) -> int:
        """Tokens of a text by the model's family; never raises."""
        return self._count(text)

    async def window(self) -> Window:
        """The window the server really has, as far as it can be learned; asks local servers each time."""
        if self._loaded:
            return self._loaded
        found = await windows.detect(self.settings)
        if windows.sets_window(self.settings) and found.source in {"loaded", "configured"}:
            self._loaded = found
        return found

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Pieces, then exactly one ReplyEnd. Raises ModelError. Closing it closes the connection within a second."""
        arguments = await self._arguments(request)
        async with aclosing(self._worker.stream(arguments, self.settings.timeout)) as pieces:
            async for piece in pieces:
                yield piece

    async def _arguments(self, request: ModelRequest) -> dict[str, object]:
        settings = self.settings
        messages = self._messages(request.view.items)
        arguments: dict[str, object] = {**settings.extra, "model": settings.name, "messages": messages}
        if request.view.tools:
            arguments["tools"] = wire_tools(request.view.tools)
        if settings.base:
            arguments["api_base"] = settings.base
        if key := await asyncio.to_thread(key_for, settings, self._find):
            arguments["api_key"] = key
        if output := request.max_output or settings.max_output or self._usual_output():
            arguments["max_tokens"] = output
        if self._dialect.reasoning == "thinking_blocks" and not dialects.may_think(messages):
            arguments = {k: v for k, v in arguments.items() if k not in {"thinking", "reasoning_effort"}}
        if windows.sets_window(settings):
            arguments |= await self._ollama()
        return arguments

    def _messages(self, items: Sequence[Item]) -> list[Wire]:
        keep = self.keeps_reasoning
        if not self._dialect.markers:
            return dialects.shape(wire(items), self._dialect, keep_reasoning=keep)
        stable = len(items)
        while stable and items[stable - 1].section == "injected" and not items[stable - 1].group:
            stable -= 1  # what changes with every request stays behind the cache mark
        messages = [*dialects.mark(wire(items[:stable])), *wire(items[stable:])]
        return dialects.shape(messages, self._dialect, keep_reasoning=keep)

    def _usual_output(self) -> int:
        if self._dialect is not dialects.ANTHROPIC:
            return 0
        entry = catalogue.find(self.settings.name)
        return min(entry.output, ANTHROPIC_OUTPUT) if entry and entry.output else ANTHROPIC_OUTPUT

    async def _ollama(self) -> dict[str, object]:
        """Its window goes with each request, and what does not fit must be refused, not silently cut in front."""
        extra = self.settings.extra.get("extra_body")
        body = extra if isinstance(extra, dict) else {}
        window = await self.window()
        return {"num_ctx": window.tokens, "extra_body": {**body, "truncate": False, "shift": False}}

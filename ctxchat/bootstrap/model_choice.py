"""Creates the model port for a model's name from the settings and flags, and checks whether a model answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic
from typing import TYPE_CHECKING, cast

import msgspec

from ctxchat.config.schema import Settings
from ctxchat.config.schema.program import Transport
from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Usage
from ctxchat.core.grouping import single
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.ports import ModelPiece, ModelPort, ModelRequest
from ctxchat.core.prices import cost
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile
from ctxchat.models.direct import Connections
from ctxchat.models.offline import OFFLINE_NAME, OFFLINE_WINDOW
from ctxchat.models.process import ModelProcess
from ctxchat.models.tokenizers import counter

if TYPE_CHECKING:
    from ctxchat.models.client import ModelTransport
    from ctxchat.models.provider_lists import ProviderLists
    from ctxchat.models.settings import ModelSettings


FIRST_WORD_TIMEOUT_S = 30.0
"""Seconds that a model has for the first piece of its reply."""

MIN_OUTPUT_TOKENS = 16
"""Output tokens that the check allows; some providers refuse fewer."""


async def answers_after(model: ModelPort, patience: float = FIRST_WORD_TIMEOUT_S) -> float:
    """Seconds until the first piece of a reply to a short question, at most `patience`. Raises ModelError; costs some twenty
    tokens."""
    question = single("user", Message(1, "user", "Say ok."), 1)
    view = compile(Ledger().append(question), Head("Answer with one word."), TokenCounter(model.count))
    began = monotonic()
    try:
        async with asyncio.timeout(patience):
            pieces = cast("AsyncGenerator[ModelPiece, None]", model.stream(ModelRequest(view, MIN_OUTPUT_TOKENS)))
            async with aclosing(pieces):
                await anext(pieces)
    except TimeoutError:
        hint = "A local server may still be loading the model: try again in a moment."
        raise ModelError(f"It said nothing for {patience:g} s.", hint, kind="timeout") from None
    except ModelError as problem:
        if problem.kind != "empty":  # its thinking used up the limit, so it does answer
            raise
    except StopAsyncIteration:
        pass
    return monotonic() - began


class Transports(msgspec.Struct, frozen=True):
    """The transports to models, shared by one run of the program: the process that holds litellm, started when it is needed, the
    connections of the direct transport, and the providers' model lists (None: providers are not asked)."""

    worker: ModelProcess
    connections: Connections = msgspec.field(default_factory=Connections)
    lists: ProviderLists | None = None

    def to(self, settings: ModelSettings, transport: Transport) -> ModelTransport:
        """The transport to a model: direct where its server is supported and the settings do not require litellm."""
        from ctxchat.models.direct import DirectTransport, server_of

        server = server_of(settings) if transport == "auto" else None
        return DirectTransport(settings, server, self.connections) if server else self.worker

    async def close(self) -> None:
        """End the process and close all connections."""
        if self.lists:
            await self.lists.close()
        await self.connections.close()
        await self.worker.close()


class Overrides(msgspec.Struct, frozen=True):
    """The command line's settings for the model: address, environment variable of the API key, context window in tokens; empty or
    0 where not given. `kept` is the address a stored session used, which overrides that of the settings; None where unknown."""

    api_base: str = ""
    api_key_env: str = ""
    window: int = 0
    kept: str | None = None


def model_port(name: str, settings: Settings, overrides: Overrides, transports: Transports) -> ModelPort:
    """The model by litellm's name, or `offline` for the built-in assistant. Raises UsageError for a name without a provider."""
    window = overrides.window or _window_set(name, settings)
    if name.partition("/")[0] == OFFLINE_NAME.partition("/")[0]:
        from ctxchat.models.offline.assistant import OfflineAssistant

        return OfflineAssistant(
            counter(OFFLINE_NAME), window=Window(window, "configured") if window else OFFLINE_WINDOW
        )
    from ctxchat.models.client import ModelClient

    chosen = settings_of(name, settings, overrides)
    return ModelClient(chosen, transports.to(chosen, settings.of_model(name).transport), lists=transports.lists)


async def warm_up(model: ModelPort) -> None:
    """Start the model's transport ahead of the first request, without waiting for litellm. Raises ModelError."""
    if model.name != OFFLINE_NAME:
        from ctxchat.models.client import ModelClient

        assert isinstance(model, ModelClient)
        await model.warm_up()


def settings_of(name: str, settings: Settings, overrides: Overrides) -> ModelSettings:
    """The settings for a model other than the offline assistant."""
    from ctxchat.models.discovery import usual_base
    from ctxchat.models.settings import ModelSettings

    own = settings.of_model(name)
    api_base = (own.api_base or usual_base(name)) if overrides.kept is None else overrides.kept
    return ModelSettings(
        name=name,
        api_base=overrides.api_base or api_base,
        api_key_env=overrides.api_key_env or own.api_key_env,
        window=overrides.window or _window_set(name, settings),
        max_output=own.max_output or settings.context.max_output,
        timeout=own.timeout,
        extra=dict(own.extra),
        fallback=own.fallback,
        keep_reasoning=own.keep_reasoning,
        vision=own.vision,
    )


def _window_set(name: str, settings: Settings) -> int:
    """The smaller of the model's own window and `context.max_tokens`, as far as they are set; 0 where neither is."""
    return min(filter(None, (settings.of_model(name).window, settings.context.max_tokens)), default=0)


def price(model: str, prompt: int, completion: int) -> float:
    """US dollars for a call with so many prompt and completion tokens, by the price list, which the first call reads; 0 where the
    model has no price."""
    from ctxchat.models.catalogue import prices

    model_prices = prices(model)
    return cost(model_prices, Usage(prompt, completion)) if model_prices else 0.0

"""From a model's name to the model, with what settings and flags say of it; and whether it answers."""

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
"""Seconds a model has for its first word."""

MIN_OUTPUT_TOKENS = 16
"""Tokens it may answer with; some providers refuse fewer."""


async def answers_after(model: ModelPort, patience: float = FIRST_WORD_TIMEOUT_S) -> float:
    """Seconds until something came. Raises ModelError; costs some twenty tokens."""
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
        if problem.kind != "empty":  # it thought about its word until the limit: it answers
            raise
    except StopAsyncIteration:
        pass
    return monotonic() - began


class Transports(msgspec.Struct, frozen=True):
    """The ways to models, shared by all of one start: the process that holds litellm, which starts when it is needed, the
    connections of the direct transport, and what providers say of their models (None: nobody is asked)."""

    worker: ModelProcess
    connections: Connections = msgspec.field(default_factory=Connections)
    lists: ProviderLists | None = None

    def to(self, settings: ModelSettings, transport: Transport) -> ModelTransport:
        """The one to a model: straight where its server needs no more, unless a person wants litellm."""
        from ctxchat.models.direct import DirectTransport, server_of

        server = server_of(settings) if transport == "auto" else None
        return DirectTransport(settings, server, self.connections) if server else self.worker

    async def close(self) -> None:
        """End the process and all connections."""
        if self.lists:
            await self.lists.close()
        await self.connections.close()
        await self.worker.close()


class Overrides(msgspec.Struct, frozen=True):
    """What the command line says of the model: address, the key's variable, window in tokens; empty or 0 where it does not.
    `kept` is the address a stored session asked at, which counts before that of the settings; None where nobody knows."""

    api_base: str = ""
    api_key_env: str = ""
    window: int = 0
    kept: str | None = None


def model_port(name: str, settings: Settings, overrides: Overrides, transports: Transports) -> ModelPort:
    """The model by litellm's name; `offline` is short for the built-in assistant. Raises UsageError for a name nobody serves."""
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
    """Make ready what it is reached through, without waiting for litellm. Raises ModelError."""
    if model.name != OFFLINE_NAME:
        from ctxchat.models.client import ModelClient

        assert isinstance(model, ModelClient)
        await model.warm_up()


def settings_of(name: str, settings: Settings, overrides: Overrides) -> ModelSettings:
    """What is set for a model that litellm reaches."""
    from ctxchat.models.discovery import usual_base
    from ctxchat.models.settings import ModelSettings

    known = settings.of_model(name)
    usual = (known.api_base or usual_base(name)) if overrides.kept is None else overrides.kept
    return ModelSettings(
        name=name,
        api_base=overrides.api_base or usual,
        api_key_env=overrides.api_key_env or known.api_key_env,
        window=overrides.window or _window_set(name, settings),
        max_output=known.max_output or settings.context.max_output,
        timeout=known.timeout,
        extra=dict(known.extra),
        fallback=known.fallback,
        keep_reasoning=known.keep_reasoning,
        vision=known.vision,
    )


def _window_set(name: str, settings: Settings) -> int:
    """The smaller of the model's window and the one to reckon with, as far as they are set; 0 where neither is."""
    return min(filter(None, (settings.of_model(name).window, settings.context.max_tokens)), default=0)


def price(model: str, prompt: int, completion: int) -> float:
    """US dollars for a call of this size by the price list; 0 where it has no price. Reads the list the first time."""
    from ctxchat.models.catalogue import prices

    known = prices(model)
    return cost(known, Usage(prompt, completion)) if known else 0.0

"""Whether a model answers, found out by asking it for a word: key, address, name and network are tried as a chat uses them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic
from typing import cast

from ctxchat.core.errors import ModelError
from ctxchat.core.grouping import single
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.ports import ModelPiece, ModelPort, ModelRequest
from ctxchat.core.tokens import Meter
from ctxchat.core.view import Frame, compile

PATIENCE = 30.0
"""Seconds a model has for its first word."""

LEAST_OUTPUT = 16
"""Tokens it may answer with; some providers refuse fewer."""


async def answers_after(model: ModelPort, patience: float = PATIENCE) -> float:
    """Seconds until something came. Raises ModelError; costs some twenty tokens."""
    question = single("user", Message(1, "user", "Say ok."), 1)
    view = compile(Ledger().append(question), Frame("Answer with one word."), Meter(model.count))
    began = monotonic()
    try:
        async with asyncio.timeout(patience):
            pieces = cast("AsyncGenerator[ModelPiece, None]", model.stream(ModelRequest(view, LEAST_OUTPUT)))
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

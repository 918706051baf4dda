"""The model double behind its own thread, for tests that wait for a program instead of awaiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.doubles.http_model import ModelDouble, Script


@contextmanager
def serving(script: Script, **about: Any) -> Iterator[ModelDouble]:
    """A double that answers until the block ends."""
    double = ModelDouble(script, **about)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(double.start(), loop).result(10)
    try:
        yield double
    finally:
        asyncio.run_coroutine_threadsafe(double.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def model_options(double: ModelDouble) -> list[str]:
    """What makes ctxchat talk to it."""
    return ["--model", "openai/double", "--api-base", double.base_url, "--window", "32768"]

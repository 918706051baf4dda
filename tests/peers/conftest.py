"""llama.cpp's server, started once for each of its two models; tests are skipped where it is not built."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from ctxchat.models.process import ModelProcess
from tests.peers.proxy import proxy_before
from tests.peers.servers import running

WINDOW = 4096
"""Tokens the server is started with."""


@contextmanager
def _running(model: str, log: Path, window: int = WINDOW) -> Iterator[str]:
    """The server with one of the models; its address without a path. Skips the test where it is not built."""
    with ExitStack() as stack:
        try:
            root = stack.enter_context(running(model, window, log))
        except FileNotFoundError as missing:
            pytest.skip(f"{missing} not built: see tests/peers/README.md")
        yield root


@pytest.fixture(scope="session")
def text_server(tmp_path_factory) -> Iterator[str]:
    """Says "Hello from a scripted model."."""
    with _running("text", tmp_path_factory.mktemp("peer") / "text.log") as root:
        yield root


@pytest.fixture(scope="session")
def tool_server(tmp_path_factory) -> Iterator[str]:
    """Calls read_file with path a.txt."""
    with _running("tool", tmp_path_factory.mktemp("peer") / "tool.log") as root:
        yield root


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def worker(tmp_path_factory) -> AsyncIterator[ModelProcess]:
    worker = ModelProcess(tmp_path_factory.mktemp("peer") / "worker.log")
    yield worker
    await worker.close()


@pytest.fixture(scope="session")
def family_server(request, tmp_path_factory) -> Iterator[tuple[str, str]]:
    """A family's name, and a server that counts as it does and always answers "Hello"."""
    log = tmp_path_factory.mktemp("peer") / f"{request.param}.log"
    with _running(request.param, log, 65_536) as root:
        yield request.param, root


@pytest.fixture(scope="session")
def proxy(text_server: str, tmp_path_factory) -> Iterator[str]:
    """litellm's own proxy before the server that says "Hello from a scripted model."."""
    with ExitStack() as stack:
        try:
            root = stack.enter_context(proxy_before(text_server, tmp_path_factory.mktemp("proxy")))
        except FileNotFoundError as missing:
            pytest.skip(f"{missing} not built: see tests/peers/README.md")
        yield root

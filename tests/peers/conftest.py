"""llama.cpp's server, started once for each of its two models; tests are skipped where it is not built."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from ctxchat.models.process import Worker

WINDOW = 4096
"""Tokens the server is started with."""


def _binary() -> Path:
    built = Path(__file__).parents[2] / "peers" / "llama-server"
    return Path(os.environ.get("CTXCHAT_LLAMA_SERVER") or built)


@contextmanager
def _running(model: str, log: Path) -> Iterator[str]:
    """The server with one of the models; its address without a path."""
    binary = _binary()
    needed = [binary, binary.with_name(model), binary.with_name("chat.jinja")]
    if missing := [path.name for path in needed if not path.is_file()]:
        pytest.skip(f"{', '.join(missing)} not built: see tests/peers/README.md")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["-m", needed[1], "-c", WINDOW, "-np", 1, "--jinja", "--chat-template-file", needed[2], "--no-webui"]
    command = [str(part) for part in [binary, *options, "--host", "127.0.0.1", "--port", port]]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        _wait_until_ready(f"http://127.0.0.1:{port}/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert server.poll() is None, "the server ended while it was starting"
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    pytest.fail("the server did not become ready")


@pytest.fixture(scope="session")
def text_server(tmp_path_factory) -> Iterator[str]:
    """Says "Hello from a scripted model."."""
    with _running("text.gguf", tmp_path_factory.mktemp("peer") / "text.log") as root:
        yield root


@pytest.fixture(scope="session")
def tool_server(tmp_path_factory) -> Iterator[str]:
    """Calls read_file with path a.txt."""
    with _running("tool.gguf", tmp_path_factory.mktemp("peer") / "tool.log") as root:
        yield root


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def worker(tmp_path_factory) -> AsyncIterator[Worker]:
    worker = Worker(tmp_path_factory.mktemp("peer") / "worker.log")
    yield worker
    await worker.close()

"""llama.cpp's own server on loopback, with whichever model is asked for."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.doubles.ports import free_port

VOCABULARIES = ("qwen2", "llama-bpe", "gemma-4")
"""Families whose own vocabulary and chat template `build.sh` puts behind the server."""


def binary() -> Path:
    """Where the server is, if it is built."""
    built = Path(__file__).parents[2] / "peers" / "llama-server"
    return Path(os.environ.get("CTXCHAT_LLAMA_SERVER") or built)


@contextmanager
def running(model: str, window: int, log: Path = Path(os.devnull)) -> Iterator[str]:
    """The server with a model and its template beside it; its address without a path. Raises FileNotFoundError for what is not
    built."""
    own = binary().with_name(f"{model}.jinja")
    needed = [binary(), binary().with_name(f"{model}.gguf"), own if own.is_file() else binary().with_name("chat.jinja")]
    if missing := [path.name for path in needed if not path.is_file()]:
        raise FileNotFoundError(", ".join(missing))
    port = free_port()
    options = ["-m", needed[1], "-c", window, "-np", 1, "--jinja", "--chat-template-file", needed[2], "--no-webui"]
    command = [str(part) for part in [needed[0], *options, "--host", "127.0.0.1", "--port", port]]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until_ready(f"http://127.0.0.1:{port}/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    """Until it answers. Raises RuntimeError when it ends instead, or takes over a minute."""
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError("the server ended while it was starting")
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError("the server did not become ready")

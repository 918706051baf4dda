"""Ports of this machine: a free one, and waiting until a server of a test takes connections at one."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing


def free_port() -> int:
    """One that nobody listens at."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def until_listening(port: int) -> None:
    """Wait for it, however slow the machine; a minute is for what never comes."""
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return

"""An HTTP server on loopback, there for as long as a test needs it."""

from __future__ import annotations

import ssl
from typing import Self

from aiohttp import web


class LoopbackServer:
    """Listens on 127.0.0.1 at `port`, 0 before it does; over TLS where `tls` is set before that. Whoever derives from it says in
    `application` what it answers."""

    def __init__(self) -> None:
        self.port = 0
        self.tls: ssl.SSLContext | None = None
        self._runner: web.AppRunner | None = None

    @property
    def root(self) -> str:
        """Its address without a path."""
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """With the path that OpenAI's clients want."""
        return f"{self.root}/v1"

    def application(self) -> web.Application:
        """The routes and what answers there."""
        raise NotImplementedError

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes a free one."""
        self._runner = web.AppRunner(self.application(), handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=self.tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and drop what is open."""
        if self._runner:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

"""The chat as a web page on this machine: textual-serve behind a guard that lets in only whoever holds the address.

Needs the extra `serve`. Every tab that is opened is a chat of its own.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web
from textual_serve.server import Server

HOST = "127.0.0.1"
ELSEWHERE = re.compile(r'<link[^>]*href="https?://(?!127\.0\.0\.1)[^>]*>')
"""What the page of textual-serve would load from others' servers: a font."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ChatServer(Server):
    """Serves one command on loopback, everything below a path that nobody guesses. `address` holds that and a token, which is
    exchanged for a cookie at the first visit. A cookie goes to every port of a machine, but only where its path leads: what
    else listens here never sees it."""

    def __init__(self, command: str, port: int, ready: Callable[[str], None]) -> None:
        self._place = f"/{secrets.token_urlsafe(32)}"
        super().__init__(command, host=HOST, port=port, title="ctxchat")  # pyright: ignore[reportUnknownMemberType]  # its paths are untyped
        self._token = secrets.token_urlsafe(32)
        self._cookie = f"ctxchat-{port}"
        self._ready = ready
        self._names = {f"{name}:{port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """What a browser is given."""
        return f"{self.public_url}{self._place}/?token={self._token}"

    def initialize_logging(self) -> None:
        logging.getLogger("textual-serve").addHandler(logging.NullHandler())

    async def on_startup(self, app: web.Application) -> None:
        self._ready(self.address)

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded])
        app.add_subapp(self._place, await super()._make_app())
        app.on_response_prepare.append(self._closed)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Only this machine's own page, opened by whoever has the token: other pages in the same browser, names that were made
        to point here, and other users of this machine are turned away."""
        if request.host not in self._names:
            raise web.HTTPForbidden(text="This page has another name.")
        origin = request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self._names:
            raise web.HTTPForbidden(text="Another page may not ask for this.")
        place, _, rest = request.path[1:].partition("/")
        ours = secrets.compare_digest(place.encode(), self._place[1:].encode())
        if ours and not rest and self._holds(request.query.get("token", "")):
            answer = web.HTTPFound(f"{self._place}/")
            answer.set_cookie(self._cookie, self._token, path=f"{self._place}/", httponly=True, samesite="Strict")
            raise answer
        if not ours or not self._holds(request.cookies.get(self._cookie, "")):
            raise web.HTTPForbidden(text="Open the address that `ctxchat serve` printed, with its token.")
        response = await handler(request)
        if isinstance(response, web.Response) and response.content_type == "text/html":
            response.text = ELSEWHERE.sub("", response.text or "")
        return response

    def _holds(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())

    async def _closed(self, request: web.Request, response: web.StreamResponse) -> None:
        """Whatever a page says, it loads from here only, in no other page's frame, and is kept nowhere."""
        here = " ".join(f"ws://{name}" for name in sorted(self._names))
        response.headers["Content-Security-Policy"] = (
            f"default-src 'self' 'unsafe-inline' data:; connect-src 'self' {here}; frame-ancestors 'none'; base-uri 'none'"
        )
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"

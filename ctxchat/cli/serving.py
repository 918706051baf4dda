"""The chat as a web page on this machine: textual-serve behind a guard that lets in only whoever holds the address.

Needs the extra `serve`. Every tab that is opened is a chat of its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.server import Server

HOST = "127.0.0.1"
ELSEWHERE = re.compile(r'<link[^>]*href="https?://(?!127\.0\.0\.1)[^>]*>')
"""What the page of textual-serve would load from others' servers: a font."""

END_TIMEOUT_S = 1.2
"""Seconds that a chat has to end by itself."""

PAGE = """\
<title>ctxchat</title>
<script>
  // Each tab has a name that outlives a reload: the server gives it the session it had.
  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16)).join("");
  const tab = sessionStorage.getItem("tab") || random();
  sessionStorage.setItem("tab", tab);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("terminal").dataset.sessionWebsocketUrl += "/" + tab;
    document.querySelector(".message").textContent =
      "The chat has ended, or could not start: where ctxchat serve runs it says why.";
    new MutationObserver(focusTerminal).observe(document.body, { attributes: true });
  });
  function focusTerminal() {
    document.querySelector(".xterm-helper-textarea")?.focus();
  }
  window.addEventListener("load", focusTerminal);
  window.addEventListener("focus", focusTerminal);
  // The browser's own: paste and reload.
  window.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (event.key === "F5" || ((event.ctrlKey || event.metaKey) && !event.altKey && (key === "v" || key === "r")))
      event.stopImmediatePropagation();
  }, true);
</script>
</head>"""
"""What the page of textual-serve lacks: a title, the keyboard from the start, the browser's own keys, tabs with a name."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Chat(AppService):
    """The program of one browser tab. `session` is the id of its present session, as the program tells."""

    session = ""

    async def on_meta(self, data: bytes) -> None:
        told = json.loads(data)
        if told.get("type") == "session":
            self.session = str(told.get("id", ""))
        else:
            await super().on_meta(data)

    async def ended(self) -> None:
        """Returns when the program has ended by itself."""
        if self._task:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """End the program, in good order if it does so soon."""
        process, task = self._process, self._task
        if process is None or task is None:
            return
        self._task = None
        with suppress(ConnectionError):
            await self.send_meta({"type": "quit"})
        gone = asyncio.create_task(process.wait())
        for end in (process.terminate, process.kill):
            if (await asyncio.wait({gone}, timeout=END_TIMEOUT_S / 2))[0]:
                break
            with suppress(ProcessLookupError):
                end()
        await asyncio.wait({gone, task}, timeout=END_TIMEOUT_S)
        process._transport.close()  # type: ignore[attr-defined]  # its pipes, which would be closed after the loop


class ChatServer(Server):
    """Serves a program for each tab on loopback, everything below a path that nobody guesses. `command` is a tab's command line,
    for the id of the session it had before it was loaded again, or for none. `address` holds the path and a token, which is
    exchanged for a cookie at the first visit. A cookie goes to every port of a machine, but only where its path leads: what else
    listens here never sees it."""

    def __init__(
        self, command: Callable[[str], str], port: int, ready: Callable[[str], None], text_size: int = 16
    ) -> None:
        self._command, self._text_size = command, text_size
        self._sessions: dict[str, str] = {}  # by tab
        self._gone: dict[str, asyncio.Event] = {}  # by tab: its program has ended and given its session free
        self._open: set[web.WebSocketResponse] = set()
        self._place = f"/{secrets.token_urlsafe(32)}"
        super().__init__(command(""), host=HOST, port=port, title="ctxchat")  # pyright: ignore[reportUnknownMemberType]  # its paths are untyped
        self._token = secrets.token_urlsafe(32)
        self._cookie = f"ctxchat-{port}"
        self._ready = ready
        self._names = {f"{name}:{port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"{self.public_url}{self._place}/?token={self._token}"

    def initialize_logging(self) -> None:
        logging.getLogger("textual-serve").addHandler(logging.NullHandler())

    def serve(self, debug: bool = False) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP. The address is told once it answers; raises OSError for a port that cannot be
        used."""

        def listening(*_: object) -> None:
            self._ready(self.address)

        self.initialize_logging()
        web.run_app(self._make_app(), host=self.host, port=self.port, print=listening)

    async def on_startup(self, app: web.Application) -> None:
        if sys.platform != "win32":  # the terminal was closed; the others end a server by themselves
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.request_exit)

    async def on_shutdown(self, app: web.Application) -> None:
        """Every tab is told, and its program ended."""
        closing = (socket.close(code=WSCloseCode.GOING_AWAY) for socket in list(self._open))
        await asyncio.gather(*closing, return_exceptions=True)

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded])
        below = await super()._make_app()
        below.router.add_get("/ws/{tab}", self.handle_websocket)
        app.add_subapp(self._place, below)
        app.on_response_prepare.append(self._closed)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests that do not come from our page with the token: from other pages in the same browser, by names that were
        made to point here, and by other users of this machine."""
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
            page = ELSEWHERE.sub("", response.text or "").replace("</head>", PAGE)
            response.text = page.replace('data-font-size="16"', f'data-font-size="{self._text_size}"')
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A tab: a program as long as it is open, and the tab closed where the program ends."""
        tab = request.match_info.get("tab", "")
        line = web.WebSocketResponse(heartbeat=15)
        await line.prepare(request)
        if before := self._gone.get(tab):
            await before.wait()
        gone = self._gone[tab] = asyncio.Event()
        chat = Chat(
            self._command(self._sessions.get(tab, "")),
            write_bytes=line.send_bytes,
            write_str=line.send_str,
            close=line.close,  # type: ignore[arg-type]
            download_manager=self.download_manager,
        )
        self._open.add(line)
        width, height = (_cells(request.query.get(name, ""), usual) for name, usual in (("width", 80), ("height", 24)))
        await chat.start(width, height)
        ended = asyncio.create_task(self._close_with(chat, line))
        try:
            await self._process_messages(line, chat)
        finally:
            await chat.stop()
            ended.cancel()
            if tab and chat.session:
                self._sessions[tab] = chat.session
            self._open.discard(line)
            gone.set()
        return line

    async def _close_with(self, chat: Chat, line: web.WebSocketResponse) -> None:
        await chat.ended()
        await line.close()

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


def _cells(text: str, usual: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 2000 else usual

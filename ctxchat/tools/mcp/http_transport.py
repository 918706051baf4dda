"""A server at an address: the client that speaks HTTP to it, who we are to it, and what its answers say of our session.

Runs in the worker process. Knows nothing of what is said over it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ctxchat.certificates import client_options
from ctxchat.core.addresses import is_loopback
from ctxchat.core.errors import ToolError, UsageError
from ctxchat.core.network import fault_of_header, proxy_for, whole_address
from ctxchat.tools.mcp.login_store import LoginStore
from ctxchat.tools.mcp.protocol import Address, LoginWanted
from ctxchat.tools.mcp.stream_guard import MAX_LINE_CHARS, reading_shallow
from ctxchat.tools.text import clip_line, size

STREAM = "text/event-stream"

MAX_LOGIN_ANSWER_BYTES = 1_000_000
"""Bytes of one answer about a login: what it is for, by whom, a token."""

ShowPage = Callable[[str, Callable[[str], object]], Awaitable[None]]
"""Shows a person the address where they log in; what it is given beside that takes the address they come back to."""


@asynccontextmanager
async def http_transport(
    address: Address, session: HttpSession, logins: Path, page: ShowPage | None
) -> AsyncGenerator[Any, None]:
    """The SDK's transport to that address, for as long as the block lasts. With a `page`, a person is there to log in where the
    server wants that; without one a login of the folder `logins` is used, if there is one. Raises ToolError."""
    try:
        whole_address(address.url)
    except ValueError as problem:
        raise ToolError(f"The url {clip_line(address.url, 200)} cannot be used: {problem}.") from problem
    store, auth = LoginStore(logins), None
    async with AsyncExitStack() as stack:
        kept = None if session.has_header or page else await asyncio.to_thread(store.read, address.url)
        if kept or (page and not session.has_header):
            login: Any = import_module("ctxchat.tools.mcp.login")
            plain = await stack.enter_async_context(_client(address, session, None))
            if page:
                secret = _variable(address.client_secret_env)
                auth = await stack.enter_async_context(login.logging_in(address, secret, store, page, plain))
            else:
                auth = login.LoginAuth(store, address.url, kept, plain)
            stack.push_async_callback(auth.wait_for_refresh)
        client = await stack.enter_async_context(_client(address, session, auth))
        sdk: Any = import_module("mcp.client.streamable_http")
        sdk.jsonrpc_message_adapter = reading_shallow(sdk.jsonrpc_message_adapter)
        yield sdk.streamable_http_client(address.url, http_client=client, max_sse_event_size=MAX_LINE_CHARS)


class HttpSession:
    """The state of a session over HTTP. `forgotten`: the server answered that it no longer knows it."""

    def __init__(self, address: Address) -> None:
        self.forgotten = False
        self.has_header = any(name.lower() == "authorization" for name in (*address.headers, *address.headers_env))
        self._url = address.url
        self._refused = False

    def raise_refusal(self) -> None:
        """Raises LoginWanted, or ToolError where a header of the settings is what the server refuses; nothing where it does not
        refuse us."""
        if self._refused and self.has_header:
            raise ToolError("It refuses the Authorization header that the settings have for it (401).")
        if self._refused:
            raise LoginWanted("It wants you to log in.")

    @contextmanager
    def told_refusals(self) -> Iterator[None]:
        """Turn HTTP errors of a refused request into a ToolError that says so."""
        try:
            yield
        except ToolError:
            raise
        except Exception:
            self.raise_refusal()
            raise

    async def check_request(self, request: Any) -> None:
        """Check a request before it is sent, to the server or to its login server. Raises ToolError."""
        if request.url != self._url:
            check_address(str(request.url), self._url)

    async def check_response(self, response: Any) -> None:
        """At an answer: 401 wants a login, 404 for a session says that it is over, and some servers say 400 and that in words.
        What is read of one has an end, but for a stream of messages."""
        asked, read = response.request.headers, response.is_success
        messages = STREAM in asked.get("accept", "")  # else it is about a login
        if not (messages and read and response.headers.get("content-type", "").startswith(STREAM)):
            response.stream = _bounded(response.stream, MAX_LINE_CHARS if messages and read else MAX_LOGIN_ANSWER_BYTES)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ToolError(
                "It sends its answer packed, which it was not asked for: there is no telling how long it is."
            )
        if messages:
            self._refused = response.status_code == 401
        if response.status_code == 404:
            self.forgotten |= "mcp-session-id" in asked
        elif response.status_code == 400 and "mcp-session-id" in asked:
            self.forgotten |= b"session" in (await response.aread()).lower()


def check_address(where: str, server: str) -> None:
    """Raises ToolError for an address that the server at `server` may not send us to."""
    if not may_send_to(where, server):
        raise ToolError(
            f"It wants the login to go over {where[:200]}, where anybody could read it, or which only this machine or its "
            "network reaches."
        )


def may_send_to(where: str, server: str) -> bool:
    """Whether a server may name an address for a part of a login: over TLS, or where it is itself reached without. To this
    machine and its network only one that is there itself may send anybody: others would have us ask what they cannot reach."""
    try:
        there, own = urlsplit(where), urlsplit(server)
    except ValueError:
        return False
    host, own_host = there.hostname or "", own.hostname or ""
    if is_loopback(host) and is_loopback(own_host):
        return there.scheme in {"http", "https"}
    if is_loopback(host) or (_is_private(host) and not _is_private(own_host)):
        return False
    return there.scheme == "https" or (there.scheme, own.scheme, host) == ("http", "http", own_host)


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address. Raises ValueError."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443}.get(parts.scheme, 80)


def _is_private(host: str) -> bool:
    """Whether it says itself that it is of a network that not everybody reaches."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _bounded(stream: Any, most: int) -> Any:
    """A body that is given up where it is longer than `most` bytes."""
    library: Any = import_module("httpx2")

    class TooLong(ToolError, library.StreamError):
        """Raised for an answer that is too long. The SDK takes this type for the fault of a single answer; any other would end
        the connection."""

    class Bounded(library.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = most
            async for piece in stream:
                left -= len(piece)
                if left < 0:
                    raise TooLong(f"It sends an answer of more than {size(most)}.")
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


_TOLD = dict(os.environ)
"""What the environment said when this process began."""


def forget_proxies() -> None:
    """Let HTTP clients use only the proxy given to them: libraries read the environment's proxy settings differently from us."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]


def _client(address: Address, session: HttpSession, auth: Any) -> Any:
    library = import_module("httpx2")
    try:
        options = client_options(library, address.url, proxy_for(address.url, _TOLD), _TOLD)
    except UsageError as problem:
        raise ToolError(problem.text, problem.hint) from problem
    options["verify"] = options["verify"] or True  # a login leads on to one with TLS
    return library.AsyncClient(
        **options,
        auth=auth,
        event_hooks={"request": [session.check_request], "response": [session.check_response]},
        headers={"Accept-Encoding": "identity", **_headers(address)},
        timeout=library.Timeout(30.0, read=None),  # a call has a limit of its own, which waits while a person is asked
    )


def _variable(name: str) -> str:
    """The value of an environment variable; empty without a name. Raises ToolError if it is not set."""
    if name and name not in os.environ:
        raise ToolError(f"The variable {name} is not set.", "It holds the client secret of this server.")
    return os.environ[name] if name else ""


def _headers(address: Address) -> dict[str, str]:
    missing = [name for name in address.headers_env.values() if name not in os.environ]
    if missing:
        raise ToolError(f"The variable {missing[0]} is not set.", "It holds a header of this server.")
    for name, value in address.headers.items():
        if fault := fault_of_header(f"{name}{value}"):
            raise ToolError(f"The header {clip_line(name, 60)!r} cannot be sent: {fault}.", "Mend it under headers.")
    for name in address.headers_env.values():
        if fault := fault_of_header(os.environ[name]):
            raise ToolError(f"The variable {name} cannot be sent: {fault}.", "It holds a header of this server.")
    return {**address.headers, **{header: os.environ[name] for header, name in address.headers_env.items()}}
